package snapshot

import (
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// A member's admin can remove the record of the policy, or leave it empty. Xylem then records the
// current policy.
func TestSecuredRecordsThePolicy(t *testing.T) {
	origin := mirror.Origin{HostID: "host-id", Root: types.NamespacedName{Namespace: "shop", Name: "backup"}, UID: "root"}
	content := Secured(&snapshotv1.VolumeSnapshotContent{Spec: snapshotv1.VolumeSnapshotContentSpec{DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete}}, origin)
	if content == nil || Policy(content) != snapshotv1.VolumeSnapshotContentDelete || !Retained(content) {
		t.Fatalf("got %v, want policy Retain, and a record of Delete", content)
	}
	if again := Secured(content, origin); again != nil {
		t.Errorf("a secured content changes: %v", again)
	}
	for _, edit := range []func(map[string]string){
		func(a map[string]string) { a[v1alpha1.AnnotationDeletionPolicy] = "" },
		func(a map[string]string) { delete(a, v1alpha1.AnnotationDeletionPolicy) },
	} {
		edited := content.DeepCopy()
		edit(edited.Annotations)
		after := Secured(edited, origin)
		if after == nil || Policy(after) != snapshotv1.VolumeSnapshotContentRetain {
			t.Errorf("without a record, got %v, want a record of Retain", after)
		}
	}
}
