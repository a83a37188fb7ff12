package snapshots_test

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

// orphan waits until a snapshot is reported as an orphan, and checks that its data is kept. Then it
// destroys the snapshot as the member's admin.
func (s *story) orphan(ctx context.Context, content *snapshotv1.VolumeSnapshotContent) {
	GinkgoHelper()
	registration(ctx, one, And(
		HaveField("Status.OrphanedSnapshots", ContainElement(HaveField("Content", content.Name))),
		HaveField("Status.Snapshots.Orphaned", BeNumerically(">=", 1)),
		says(v1alpha1.ConditionSnapshotsAccounted, metav1.ConditionFalse, v1alpha1.ReasonOrphanedSnapshots, content.Name)))
	s.noted(ctx, "ClusterRegistration", one, v1alpha1.ReasonOrphanedSnapshot, content.Name)
	Expect(s.taken(one, "data")).To(ContainElement(*content.Status.SnapshotHandle))
	gone[snapshotv1.VolumeSnapshot](ctx, s, x.Member(one), content.Spec.VolumeSnapshotRef.Name)
	until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Member(one), content.Name, HaveField("Spec.DeletionPolicy", policyRetain))

	patch(ctx, x.Member(one), &snapshotv1.VolumeSnapshotContent{ObjectMeta: named(content.Name)}, `{"spec":{"deletionPolicy":"Delete"}}`)
	s.remove(ctx, x.Member(one), &snapshotv1.VolumeSnapshotContent{}, content.Name)
	gone[snapshotv1.VolumeSnapshotContent](ctx, s, x.Member(one), content.Name)
	Expect(s.taken(one, "data")).NotTo(ContainElement(*content.Status.SnapshotHandle))
	registration(ctx, one, And(
		HaveField("Status.OrphanedSnapshots", Not(ContainElement(HaveField("Content", content.Name)))),
		says(v1alpha1.ConditionSnapshotsAccounted, metav1.ConditionTrue, v1alpha1.ReasonAllAccounted)))
}
