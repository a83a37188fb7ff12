package leafcache

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The reduced object keeps the fields that the Attached condition is derived from, and the time
// when its status was last written.
func TestReduceAttachment(t *testing.T) {
	at := func(minute int) *metav1.Time {
		return new(metav1.Date(2026, 11, 25, 12, minute, 0, 0, time.UTC))
	}
	got, err := reduceAttachment(&storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{
			Name: "csi-1", UID: "uid", ResourceVersion: "7", CreationTimestamp: *at(1), DeletionTimestamp: at(9), Annotations: map[string]string{"csi.alpha": "x"}, Finalizers: []string{"external-attacher/d"},
			ManagedFields: []metav1.ManagedFieldsEntry{
				{Manager: "kube-controller-manager", Time: at(8)}, {Manager: "old", Subresource: "status", Time: at(2)},
				{Manager: "csi-attacher", Subresource: "status", Time: at(3)}, {Manager: "x", Subresource: "status"},
			},
		},
		Spec: storagev1.VolumeAttachmentSpec{Attacher: "d", NodeName: "n", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("pv")}},
		Status: storagev1.VolumeAttachmentStatus{
			Attached: true, AttachmentMetadata: map[string]string{"device": "/dev/x"},
			AttachError: &storagev1.VolumeError{Time: *at(4), Message: "a"}, DetachError: &storagev1.VolumeError{Time: *at(5), Message: "b"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{
			Name: "csi-1", UID: "uid", ResourceVersion: "7", CreationTimestamp: *at(1), DeletionTimestamp: at(9),
			ManagedFields: []metav1.ManagedFieldsEntry{{Subresource: "status", Time: at(3)}},
		},
		Spec:   storagev1.VolumeAttachmentSpec{Attacher: "d", NodeName: "n", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("pv")}},
		Status: storagev1.VolumeAttachmentStatus{Attached: true, AttachError: &storagev1.VolumeError{Message: "a"}, DetachError: &storagev1.VolumeError{Message: "b"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
