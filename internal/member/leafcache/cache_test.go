package leafcache

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/member/budget"
)

// A watch that fails because its link ends is not logged as an error.
func TestComplain(t *testing.T) {
	var told []string
	handlers := utilruntime.ErrorHandlers
	t.Cleanup(func() { utilruntime.ErrorHandlers = handlers })
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(_ context.Context, err error, _ string, _ ...any) { told = append(told, err.Error()) }}
	reflector := toolscache.NewReflector(&toolscache.ListWatch{}, &corev1.Pod{}, toolscache.NewStore(toolscache.MetaNamespaceKeyFunc), 0)
	ctx, end := context.WithCancel(t.Context())
	logWatchError(ctx, reflector, errors.New("forbidden"))
	end()
	logWatchError(ctx, reflector, fmt.Errorf("watch Pods: %w", ctx.Err()))
	if diff := cmp.Diff([]string{"forbidden"}, told); diff != "" {
		t.Errorf("log lines -want +got:\n%s", diff)
	}
}

// The reduced object keeps the fields that capacity is computed from, and whether it has a
// topology.
func TestReduceCapacity(t *testing.T) {
	size := resource.MustParse("1Gi")
	seen := func(topology *metav1.LabelSelector) *storagev1.CSIStorageCapacity {
		return &storagev1.CSIStorageCapacity{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "kube-system", Name: "csisc-1", UID: "uid", ResourceVersion: "7", Labels: map[string]string{"a": "b"},
				OwnerReferences: []metav1.OwnerReference{{Name: "provisioner"}}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "csi"}},
			},
			StorageClassName: "fast", Capacity: &size, MaximumVolumeSize: &size, NodeTopology: topology,
		}
	}
	kept := &storagev1.CSIStorageCapacity{
		ObjectMeta:       metav1.ObjectMeta{Namespace: "kube-system", Name: "csisc-1", UID: "uid", ResourceVersion: "7"},
		StorageClassName: "fast", Capacity: &size, MaximumVolumeSize: &size,
	}
	everywhere := kept.DeepCopy()
	everywhere.NodeTopology = &metav1.LabelSelector{}
	for name, c := range map[string]struct {
		topology *metav1.LabelSelector
		want     *storagev1.CSIStorageCapacity
	}{
		"the capacity of some nodes": {&metav1.LabelSelector{MatchLabels: map[string]string{"rack": "1"}}, everywhere},
		"the capacity of all nodes":  {&metav1.LabelSelector{}, everywhere},
		"the capacity of no node":    {nil, kept},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := reduceCapacity(seen(c.topology))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// The contents of ConfigMaps and Secrets do not count towards the limit of a member's caches, because
// tenants of the host choose them.
func TestCopiedContentsAreNotCached(t *testing.T) {
	keys := map[string]string{}
	for i := range 150_000 {
		keys[fmt.Sprint(i)] = ""
	}
	h := &CacheBudget{Limiter: budget.NewMemoryLimiter(budget.DefaultMemoryLimits, clientgoscheme.Scheme)}
	for _, object := range []client.Object{&corev1.ConfigMap{Data: keys}, &corev1.Secret{Data: map[string][]byte{"a": make([]byte, 1<<20)}}} {
		list := &metainternalversion.List{}
		for i := range 3 {
			object.SetName(fmt.Sprint(i))
			list.Items = append(list.Items, object.DeepCopyObject())
		}
		c := h.countedListWatch(&toolscache.ListWatch{ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) { return list, nil }}, kindReductions[reflect.TypeOf(object)])
		if _, err := c.ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if h.total > 6*4<<10 {
		t.Errorf("6 large objects count as %d bytes, want at most 4 KiB each", h.total)
	}
}
