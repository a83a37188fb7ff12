package rootconfig

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror/refs"
)

// objects is a client that reads these objects, and records the last patch.
type objects struct {
	client.Client
	all   []client.Object
	patch map[string]any
}

func (c *objects) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	for _, obj := range c.all {
		if client.ObjectKeyFromObject(obj) == key && reflect.TypeOf(obj) == reflect.TypeOf(into) {
			reflect.ValueOf(into).Elem().Set(reflect.ValueOf(obj.DeepCopyObject()).Elem())
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (c *objects) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, &c.patch)
}

// An update sets exactly the root's contents, although the cache has only a digest of the copy's.
func TestUpdate(t *testing.T) {
	want := translated(root(func(cm *corev1.ConfigMap) {
		cm.UID, cm.Data = "u2", map[string]string{"kept": "1", "changed": "2", "added": "1"}
	}), copies)
	has := func(cm *corev1.ConfigMap) {
		cm.Data = map[string]string{"kept": "1", "changed": "1", "removed": "1"}
		cm.BinaryData = map[string][]byte{"bytes": {1}}
	}
	cached := leaf(has)
	cached.ResourceVersion = "4" // an earlier version than the live copy
	for name, tc := range map[string]struct {
		live  *corev1.ConfigMap
		patch map[string]any
	}{
		"the copy has other contents": {leaf(has), map[string]any{
			"metadata":   map[string]any{"uid": "l1", "resourceVersion": "5", "annotations": map[string]any{"xylem.io/root-uid": "u2"}},
			"data":       map[string]any{"changed": "2", "added": "1", "removed": nil},
			"binaryData": nil,
		}},
		"the copy was re-created":            {live: leaf(func(cm *corev1.ConfigMap) { cm.UID = "l2" })},
		"a foreign object replaced the copy": {live: leaf(func(cm *corev1.ConfigMap) { cm.Labels = nil })},
		"the copy became immutable":          {live: leaf(has, func(cm *corev1.ConfigMap) { cm.Immutable = new(true) })},
		"the copy is gone":                   {live: leaf(func(cm *corev1.ConfigMap) { cm.Name = "other" })},
	} {
		t.Run(name, func(t *testing.T) {
			there := &objects{all: []client.Object{tc.live}}
			r := newCopier(&member.Link{
				Member: here, Live: there, HostLive: &objects{all: []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: copies.NamespaceUID}}}},
				MemberWriter: guarded.NewMemberWriter(there, here.HostID, here.Registration, guarded.HostOnlyGuard{}),
			}, configMapKind(), nil)
			o := observed{kind: refs.KindConfigMap, key: types.NamespacedName{Namespace: "shop", Name: "config"}, copies: copies, want: want}
			err := r.update(t.Context(), o, refs.ReduceConfigMap(cached))
			if retried := err != nil; retried != (tc.patch == nil) {
				t.Errorf("error is %v, want one: %t", err, tc.patch == nil)
			}
			if diff := cmp.Diff(tc.patch, there.patch); diff != "" {
				t.Errorf("patch -want +got:\n%s", diff)
			}
		})
	}
}
