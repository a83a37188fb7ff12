package hostclass

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
)

// cached is a cache with at most one StorageClass.
type cached struct {
	client.Reader
	class *storagev1.StorageClass
}

func (c *cached) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if c.class == nil {
		return apierrors.NewNotFound(storagev1.Resource("storageclasses"), key.Name)
	}
	c.class.DeepCopyInto(into.(*storagev1.StorageClass))
	return nil
}

func class(uid types.UID, provisioner string, parameters map[string]string) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast", UID: uid}, Provisioner: provisioner, Parameters: parameters}
}

// An invalid class is reported only once, even if it is reconciled again. If it is re-created, it
// is reported again.
func TestReconcile(t *testing.T) {
	const ours = v1alpha1.ProvisionerName
	wrong := map[string]string{"xylem.io/sise": "x"}
	recorder := events.NewFakeRecorder(8)
	reader := &cached{}
	r := &Reconciler{Client: reader, Recorder: recorder, reported: map[string]types.UID{}}
	for _, step := range []struct {
		name     string
		class    *storagev1.StorageClass
		reported bool
	}{
		{"a valid class", class("1", ours, map[string]string{"xylem.io/member-class": "gp3"}), false},
		{"a class of another provisioner", class("2", "ebs.csi.aws.com", wrong), false},
		{"an invalid class", class("3", ours, wrong), true},
		{"the invalid class is reconciled again", class("3", ours, wrong), false},
		{"the class is deleted", nil, false},
		{"the class is re-created and still invalid", class("4", ours, wrong), true},
		{"the class is replaced without an event for the deletion", class("5", ours, wrong), true},
	} {
		reader.class = step.class
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: index.Named("fast")}); err != nil {
			t.Fatal(err)
		}
		var said string
		select {
		case said = <-recorder.Events:
		default:
		}
		if diff := cmp.Diff(step.reported, strings.Contains(said, "ClassInvalid") && strings.Contains(said, "xylem.io/sise")); diff != "" {
			t.Errorf("%s: event is %q (-want +got):\n%s", step.name, said, diff)
		}
	}
}
