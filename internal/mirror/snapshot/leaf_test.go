package snapshot

import (
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// A member's admin can remove the record of the policy, or leave it empty. Xylem then records the
// current policy.
func TestSecuredRecordsThePolicy(t *testing.T) {
	origin := mirror.Origin{HostID: "host-id", Root: types.NamespacedName{Namespace: "shop", Name: "backup"}, UID: "root"}
	content := SecuredContent(&snapshotv1.VolumeSnapshotContent{Spec: snapshotv1.VolumeSnapshotContentSpec{DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete}}, origin)
	if content == nil || MemberDeletionPolicy(content) != snapshotv1.VolumeSnapshotContentDelete || !IsContentRetained(content) {
		t.Fatalf("got %v, want policy Retain, and a record of Delete", content)
	}
	if again := SecuredContent(content, origin); again != nil {
		t.Errorf("a secured content changes: %v", again)
	}
	for _, edit := range []func(map[string]string){
		func(a map[string]string) { a[v1alpha1.AnnotationDeletionPolicy] = "" },
		func(a map[string]string) { delete(a, v1alpha1.AnnotationDeletionPolicy) },
	} {
		edited := content.DeepCopy()
		edit(edited.Annotations)
		after := SecuredContent(edited, origin)
		if after == nil || MemberDeletionPolicy(after) != snapshotv1.VolumeSnapshotContentRetain {
			t.Errorf("without a record, got %v, want a record of Retain", after)
		}
	}
}

// A leaf content whose VolumeSnapshot was deleted before it was recorded shows that UID.
func TestRecordContentRecordsTheSnapshot(t *testing.T) {
	leaf := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: ContentName("leaf"), UID: "content"}}
	leaf.Spec.VolumeSnapshotRef.UID, leaf.Spec.Source.VolumeHandle = "leaf", ptr.To("disk-1")
	recorded := RecordLeafContent(&snapshotv1.VolumeSnapshotContent{}, leaf)
	if got := ContentRecordOf(recorded); got.Snapshot != "leaf" || got.Content != "content" {
		t.Errorf("recorded %+v", got)
	}
	imported := leaf.DeepCopy()
	imported.Name = "imported"
	if got := ContentRecordOf(RecordLeafContent(&snapshotv1.VolumeSnapshotContent{}, imported)); got.Snapshot != "" {
		t.Errorf("for an imported content, recorded %+v", got)
	}
	other := recorded.DeepCopy()
	other.Annotations[v1alpha1.AnnotationLeafSnapshotUID] = "earlier"
	if got := ContentRecordOf(RecordLeafContent(other, leaf)); got.Snapshot != "earlier" {
		t.Errorf("the record of the leaf changed to %+v", got)
	}
}
