package snapshots_test

import (
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane/csidriver"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/integration/suite"
)

const policyDelete, policyRetain = snapshotv1.VolumeSnapshotContentDelete, snapshotv1.VolumeSnapshotContentRetain

var _ = Describe("A snapshot", func() {
	It("is taken in the member that has the claim, shows the driver's status, and is destroyed with its VolumeSnapshot (I1, I2, I5)", suite.Core, func(ctx SpecContext) {
		s := begin(ctx)
		s.data(ctx, "data", nodeOne)
		vs := s.ready(ctx, "snap", "data", deletes)

		leaf, content := s.leaf(ctx, one, "snap")
		By("checking that the host shows the member's status")
		Expect(vs.Status.RestoreSize.Value()).To(Equal(*content.Status.RestoreSize))
		Expect(vs.Status.CreationTime.UnixNano()).To(BeNumerically("~", *content.Status.CreationTime, 1e9))
		host := until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(vs), isReady(true))
		Expect(handleOf(host)).To(Equal(leafID(ctx, one) + "/" + content.Name))
		Expect(host.Annotations).To(And(
			HaveKeyWithValue(v1alpha1.AttributeHandle, *content.Status.SnapshotHandle), HaveKeyWithValue(v1alpha1.AttributeDriver, content.Spec.Driver),
			HaveKeyWithValue(v1alpha1.AttributeLeafUID, string(content.UID)), HaveKeyWithValue(v1alpha1.AnnotationLeafSnapshotUID, string(leaf.UID)),
			HaveKeyWithValue(v1alpha1.AnnotationPlacedIn, leafID(ctx, one)), Not(HaveKey("snapshot.storage.kubernetes.io/volumesnapshot-being-created"))))

		By("checking that the member alone cannot destroy the snapshot")
		Expect(content.Spec.DeletionPolicy).To(Equal(policyRetain))
		Expect(content.Annotations).To(And(HaveKeyWithValue(v1alpha1.AnnotationDeletionPolicy, string(policyDelete)),
			HaveKeyWithValue(v1alpha1.AnnotationRootUID, string(vs.UID))))
		Expect(s.taken(one, "data")).To(ConsistOf(*content.Status.SnapshotHandle))
		registration(ctx, one, HaveField("Status.Snapshots.Ready", BeNumerically(">=", 1)))

		By("deleting the VolumeSnapshot")
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, "snap")
		gone[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "snap")
		gone[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, host.Name)
		gone[snapshotv1.VolumeSnapshot](ctx, s, x.Member(one), "snap")
		gone[snapshotv1.VolumeSnapshotContent](ctx, s, x.Member(one), content.Name)
		Expect(s.taken(one, "data")).To(BeEmpty())
		Expect(s.book(one, "data").Count(ledger.CreateSnapshot)).To(Equal(1))
	}, SpecTimeout(storyTime))

	It("quotes the driver's error, and becomes ready when the driver recovers", func(ctx SpecContext) {
		s := begin(ctx)
		s.data(ctx, "data", nodeOne)
		member := x.Fleet.Member(one)
		Expect(member.SetFaults(csidriver.Fault{Method: ledger.CreateSnapshot, Claim: s.namespace + "/data", Code: codes.ResourceExhausted, Message: "the pool tank7 is full"})).To(Succeed())
		DeferCleanup(func() { Expect(member.SetFaults()).To(Succeed()) })
		vs := s.take(ctx, "snap", "data", deletes)
		until[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "snap", And(fails("the pool tank7 is full"), isReady(false)))
		until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(vs), HaveField("Annotations", HaveKey("snapshot.storage.kubernetes.io/volumesnapshot-being-created")))
		Expect(member.SetFaults()).To(Succeed())
		until[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "snap", And(isReady(true), HaveField("Status.Error", BeNil())))
	}, SpecTimeout(storyTime))

	It("blocks the deletion of its claim until it is ready, and outlives the claim (I1, I2)", func(ctx SpecContext) {
		s := begin(ctx)
		s.data(ctx, "data", nodeOne)
		member := x.Fleet.Member(one)
		Expect(member.SetFaults(csidriver.Fault{Method: ledger.CreateSnapshot, Claim: s.namespace + "/data", Code: codes.Unavailable, Message: "the array restarts"})).To(Succeed())
		DeferCleanup(func() { Expect(member.SetFaults()).To(Succeed()) })
		vs := s.take(ctx, "snap", "data", deletes)
		until[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "snap", fails("the array restarts"))
		s.remove(ctx, x.Host, &corev1.Pod{}, "data")
		s.remove(ctx, x.Host, &corev1.PersistentVolumeClaim{}, "data")
		s.noted(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonStuckDeletion, `VolumeSnapshot "snap"`)
		Expect(member.SetFaults()).To(Succeed())
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data")
		until[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "snap", isReady(true))
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, "snap")
		gone[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(vs))
		Eventually(func() []string { return s.taken(one, "data") }).Should(BeEmpty())
		Eventually(func() []string { return s.book(one, "data").LiveIDs() }).Should(BeEmpty())
	}, SpecTimeout(storyTime))

	It("is retained if the host's policy is Retain, and its name can be used again (I2)", func(ctx SpecContext) {
		s := begin(ctx)
		s.data(ctx, "data", nodeOne)
		vs := s.ready(ctx, "snap", "data", keeps)
		_, content := s.leaf(ctx, one, "snap")
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, "snap")
		gone[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "snap")
		gone[snapshotv1.VolumeSnapshot](ctx, s, x.Member(one), "snap")

		By("taking another snapshot with the same name")
		s.ready(ctx, "snap", "data", deletes)
		Expect(s.taken(one, "data")).To(HaveLen(2))
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, "snap")
		Eventually(func() []string { return s.taken(one, "data") }).Should(ConsistOf(*content.Status.SnapshotHandle))

		By("deleting the retained content as an admin, so that the snapshot is an orphan, which Xylem never destroys")
		until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(vs), isReady(true))
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshotContent{}, contentName(vs))
		gone[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(vs))
		s.orphan(ctx, content)
	}, SpecTimeout(storyTime))

	It("is retained if the member's policy is Retain, and the host shows that policy (I2)", func(ctx SpecContext) {
		s := begin(ctx)
		s.data(ctx, "data", nodeOne)
		vs := s.ready(ctx, "snap", "data", retains)
		_, content := s.leaf(ctx, one, "snap")
		until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(vs), HaveField("Spec.DeletionPolicy", policyRetain))

		By("setting Delete in the host, although Retain in the member takes precedence")
		patch(ctx, x.Host, &snapshotv1.VolumeSnapshotContent{ObjectMeta: named(contentName(vs))}, `{"spec":{"deletionPolicy":"Delete"}}`)
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, "snap")
		gone[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "snap")
		gone[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(vs))
		s.orphan(ctx, content)
	}, SpecTimeout(storyTime))
})
