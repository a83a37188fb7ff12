package snapshots_test

import (
	"context"
	"fmt"
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/csidriver"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// failing makes a method of member one's driver fail for a claim until mend() is called.
func (s *story) failing(method, claim, message string) (mend func()) {
	GinkgoHelper()
	member := x.Fleet.Member(one)
	Expect(member.SetFaults(csidriver.Fault{Method: method, Claim: s.namespace + "/" + claim, Code: codes.Unavailable, Message: message})).To(Succeed())
	mend = func() {
		GinkgoHelper()
		Expect(member.SetFaults()).To(Succeed())
	}
	DeferCleanup(mend)
	return mend
}

// restart kills the manager, starts it again, and waits until member one is Ready.
func restart(ctx context.Context) {
	GinkgoHelper()
	Expect(x.Manager.Kill()).To(Succeed())
	Expect(x.Manager.Start(ctx)).To(Succeed())
	Expect(x.AwaitReady(ctx, one)).To(Succeed())
}

// problem waits until the host's content of a ready snapshot, and an event on its VolumeSnapshot,
// report a problem. The VolumeSnapshot's status does not report it, because a snapshot-controller
// never changes this status once the snapshot is ready.
func (s *story) problem(ctx context.Context, vs *snapshotv1.VolumeSnapshot, reason string, parts ...string) {
	GinkgoHelper()
	until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(vs), And(fails(parts...), isReady(false)))
	s.noted(ctx, "VolumeSnapshot", vs.Name, reason, parts...)
}

var _ = Describe("A snapshot after a failure", func() {
	It("is taken only once if the manager is killed while the driver takes it (I5)", func(ctx SpecContext) {
		s := begin(ctx)
		s.data(ctx, "data", nodeOne)
		mend := s.failing(ledger.CreateSnapshot, "data", "the array restarts")
		s.take(ctx, "snap", "data", deletes)
		until[snapshotv1.VolumeSnapshot](ctx, s, x.Member(one), "snap", HaveField("Status", Not(BeNil())))
		restart(ctx)
		mend()
		until[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "snap", isReady(true))
		Expect(s.taken(one, "data")).To(HaveLen(1))
		restart(ctx)
		s.goesOn(ctx, "later", "data")
		Expect(s.taken(one, "data")).To(HaveLen(2))
	}, SpecTimeout(storyTime))

	It("is destroyed even if the manager is killed while the driver destroys it (I1, I2)", func(ctx SpecContext) {
		s := begin(ctx)
		s.data(ctx, "data", nodeOne)
		vs := s.ready(ctx, "snap", "data", deletes)
		mend := s.failing(ledger.DeleteSnapshot, "data", "the array restarts")
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, "snap")
		_, content := s.leaf(ctx, one, "snap")
		until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Member(one), content.Name, HaveField("Spec.DeletionPolicy", policyDelete))
		restart(ctx)
		By("checking that the host's content is kept until the member's driver has destroyed the snapshot")
		s.goesOn(ctx, "later", "data")
		until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(vs), HaveField("DeletionTimestamp", Not(BeNil())))
		s.noted(ctx, "VolumeSnapshot", "snap", v1alpha1.ReasonStuckDeletion, contentName(vs))
		mend()
		gone[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(vs))
		gone[snapshotv1.VolumeSnapshotContent](ctx, s, x.Member(one), content.Name)
		Expect(s.taken(one, "data")).To(HaveLen(1), "only the barrier's snapshot must be left")
	}, SpecTimeout(storyTime))

	It("reports that its member is away, and is deleted when the member is connected again (I1, I2)", func(ctx SpecContext) {
		s := begin(ctx)
		s.data(ctx, "data", nodeOne)
		vs := s.ready(ctx, "snap", "data", deletes)
		api := x.Fleet.Member(one).Process(controlplane.APIServer)
		Expect(api.Freeze()).To(Succeed())
		DeferCleanup(api.Thaw)
		registration(ctx, one, says(v1alpha1.ConditionConnected, metav1.ConditionFalse, v1alpha1.ReasonUnreachable))

		By("checking that the snapshot stays ready, because its data still exists")
		until[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "snap", isReady(true))
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, "snap")
		until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(vs), And(HaveField("DeletionTimestamp", Not(BeNil())), fails(one, "has not been connected since")))
		s.noted(ctx, "VolumeSnapshot", "snap", v1alpha1.ReasonMemberAway, one)
		Expect(s.taken(one, "data")).To(HaveLen(1))

		Expect(api.Thaw()).To(Succeed())
		gone[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(vs))
		Expect(s.taken(one, "data")).To(BeEmpty())
		Expect(x.AwaitReady(ctx, one)).To(Succeed())
	}, SpecTimeout(storyTime))

	It("keeps its data if the member's admin deletes the leaf VolumeSnapshot, and reports that it cannot be restored (I2)", func(ctx SpecContext) {
		s := begin(ctx)
		s.data(ctx, "data", nodeOne)
		vs := s.ready(ctx, "snap", "data", deletes)
		s.remove(ctx, x.Member(one), &snapshotv1.VolumeSnapshot{}, "snap")
		gone[snapshotv1.VolumeSnapshot](ctx, s, x.Member(one), "snap")
		s.problem(ctx, vs, v1alpha1.ReasonSnapshotLost, "somebody deleted VolumeSnapshot", one)
		Expect(s.taken(one, "data")).To(HaveLen(1))

		By("deleting the VolumeSnapshot in the host, which destroys the snapshot")
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, "snap")
		gone[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(vs))
		Expect(s.taken(one, "data")).To(BeEmpty())
	}, SpecTimeout(storyTime))

	It("keeps its data if the member's admin deletes the leaf content (I2)", func(ctx SpecContext) {
		s := begin(ctx)
		s.data(ctx, "data", nodeOne)
		vs := s.ready(ctx, "snap", "data", deletes)
		_, content := s.leaf(ctx, one, "snap")
		handle := *content.Status.SnapshotHandle
		s.remove(ctx, x.Member(one), &snapshotv1.VolumeSnapshotContent{}, content.Name)
		s.problem(ctx, vs, v1alpha1.ReasonSnapshotTerminating, one, "cannot be undone")
		Expect(s.taken(one, "data")).To(ConsistOf(handle))

		By("also removing the content's finalizers, after which the member's snapshot-controller re-creates it for the same snapshot")
		patch(ctx, x.Member(one), &snapshotv1.VolumeSnapshotContent{ObjectMeta: named(content.Name)}, `{"metadata":{"finalizers":null}}`)
		again := until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Member(one), content.Name, And(HaveField("UID", Not(Equal(content.UID))),
			HaveField("Annotations", HaveKeyWithValue(v1alpha1.AnnotationRootUID, string(vs.UID))), HaveField("Spec.DeletionPolicy", policyRetain)))
		until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(vs), And(isReady(true),
			HaveField("Annotations", HaveKeyWithValue(v1alpha1.AttributeLeafUID, string(again.UID)))))
		Expect(s.taken(one, "data")).To(ConsistOf(handle))

		By("deleting the VolumeSnapshot in the host, which destroys the snapshot")
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, "snap")
		gone[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(vs))
		Expect(s.taken(one, "data")).To(BeEmpty())
	}, SpecTimeout(storyTime))

	It("is protected, and reported if it is lost, while its content in the host is being deleted but its VolumeSnapshot is not (I2, I6)", func(ctx SpecContext) {
		s := begin(ctx)
		s.data(ctx, "data", nodeOne)
		vs := s.ready(ctx, "snap", "data", deletes)
		_, content := s.leaf(ctx, one, "snap")
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshotContent{}, contentName(vs))
		s.noted(ctx, "VolumeSnapshotContent", contentName(vs), v1alpha1.ReasonStuckDeletion, "/snap", "still exists")

		By("setting the leaf content to Delete: Xylem sets it to Retain again")
		patch(ctx, x.Member(one), &snapshotv1.VolumeSnapshotContent{ObjectMeta: named(content.Name)}, `{"spec":{"deletionPolicy":"Delete"}}`)
		until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Member(one), content.Name, HaveField("Spec.DeletionPolicy", policyRetain))
		until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(vs), isReady(true))

		By("deleting the leaf VolumeSnapshot: the snapshot is lost, but not its data")
		s.remove(ctx, x.Member(one), &snapshotv1.VolumeSnapshot{}, "snap")
		s.problem(ctx, vs, v1alpha1.ReasonSnapshotLost, "somebody deleted VolumeSnapshot", one)
		Expect(s.taken(one, "data")).To(HaveLen(1))

		By("deleting the VolumeSnapshot in the host, which destroys the snapshot")
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, "snap")
		gone[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(vs))
		Expect(s.taken(one, "data")).To(BeEmpty())
	}, SpecTimeout(storyTime))

	It("can be deleted after an admin changed its content's reference and restored it, and is kept (I1, I2, I6)", func(ctx SpecContext) {
		s := begin(ctx)
		s.data(ctx, "data", nodeOne)
		vs := s.ready(ctx, "snap", "data", keeps)
		_, leaf := s.leaf(ctx, one, "snap")
		content := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: contentName(vs)}}
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, "snap")
		gone[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "snap")
		patch(ctx, x.Host, content, `{"spec":{"volumeSnapshotRef":{"name":"again","uid":null}}}`)
		until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, content.Name, fails("changed spec.volumeSnapshotRef", string(vs.UID), v1alpha1.AnnotationAbandon))

		By("deleting the content, which waits and still reports why")
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshotContent{}, content.Name)
		until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, content.Name, And(HaveField("DeletionTimestamp", Not(BeNil())), fails("changed spec.volumeSnapshotRef")))

		By("restoring the reference")
		patch(ctx, x.Host, content, fmt.Sprintf(`{"spec":{"volumeSnapshotRef":{"name":"snap","uid":%q}}}`, vs.UID))
		gone[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, content.Name)
		gone[snapshotv1.VolumeSnapshot](ctx, s, x.Member(one), "snap")
		s.orphan(ctx, leaf)
	}, SpecTimeout(storyTime))

	It("reports that an earlier snapshot has its name in the member, and is taken when that one is gone (I6)", func(ctx SpecContext) {
		s := begin(ctx)
		s.data(ctx, "data", nodeOne)
		s.ready(ctx, "snap", "data", keeps)
		patch(ctx, x.Member(one), &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "snap"}}, `{"metadata":{"finalizers":["example.com/hold"]}}`)
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, "snap")
		gone[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "snap")
		s.take(ctx, "snap", "data", deletes)
		until[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "snap", fails("an earlier snapshot with this name", one))
		s.noted(ctx, "VolumeSnapshot", "snap", v1alpha1.ReasonNameTaken, "an earlier snapshot with this name")

		By("removing what blocks the deletion of the earlier leaf")
		patch(ctx, x.Member(one), &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "snap"}}, `{"metadata":{"finalizers":null}}`)
		until[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "snap", isReady(true))
		Expect(s.taken(one, "data")).To(HaveLen(2))
	}, SpecTimeout(storyTime))

	It("is kept in a deregistered member, and returns to the host when the member is registered again (I1, I2)", func(ctx SpecContext) {
		s := begin(ctx)
		s.data(ctx, "data", nodeTwo)
		vs := s.ready(ctx, "snap", "data", deletes)
		until[corev1.Pod](ctx, s, x.Host, "data", HaveField("Status.Phase", corev1.PodRunning))
		Expect(x.Deregister(ctx, two)).To(Succeed())
		s.problem(ctx, vs, v1alpha1.ReasonSnapshotAbandoned, two, "was deregistered")
		Expect(s.taken(two, "data")).To(HaveLen(1))

		Expect(x.Register(ctx, two, two)).To(Succeed())
		until[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "snap", And(isReady(true), HaveField("Status.Error", BeNil())))
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, "snap")
		gone[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(vs))
		Expect(s.taken(two, "data")).To(BeEmpty())
	}, SpecTimeout(storyTime))

	It("is reported, and not destroyed, after the host was restored from an older backup (I1, I2)", func(ctx SpecContext) {
		s := begin(ctx)
		s.data(ctx, "data", nodeOne)
		deleted := s.ready(ctx, "deleted-since", "data", deletes)
		backup, err := x.Fleet.Host.Snapshot(ctx)
		Expect(err).NotTo(HaveOccurred())
		age := suite.Aging(ctx, x, one)
		s.ready(ctx, "newer", "data", deletes)
		_, newer := s.leaf(ctx, one, "newer")
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, "deleted-since")
		gone[snapshotv1.VolumeSnapshot](ctx, s, x.Member(one), "deleted-since")
		Eventually(func() []string { return s.taken(one, "data") }).Should(ConsistOf(*newer.Status.SnapshotHandle))
		age()

		Expect(x.Manager.Stop()).To(Succeed())
		Expect(x.Fleet.Host.Restore(ctx, backup)).To(Succeed())
		Expect(x.Manager.Start(ctx)).To(Succeed())
		registration(ctx, one, And(says(v1alpha1.ConditionConnected, metav1.ConditionTrue, v1alpha1.ReasonHostRestored),
			HaveField("Status.OrphanedSnapshots", ContainElement(HaveField("Content", newer.Name)))))
		s.problem(ctx, deleted, v1alpha1.ReasonSnapshotLost)

		By("confirming the restore for both members")
		suite.ConfirmRestore(ctx, x, one, v1alpha1.ReasonHostRestored)
		suite.ConfirmRestore(ctx, x, two, v1alpha1.ReasonHostRestored)
		s.goesOn(ctx, "later", "data")
		Expect(s.taken(one, "data")).To(ContainElement(*newer.Status.SnapshotHandle))
		s.orphan(ctx, newer)
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, "deleted-since")
		gone[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "deleted-since")
	}, SpecTimeout(storyTime))

	It("is reported as lost after its member was restored from an older backup, and deletions wait for a confirmation (I2, I6)", func(ctx SpecContext) {
		s := begin(ctx)
		s.data(ctx, "data", nodeOne)
		older := s.ready(ctx, "older", "data", deletes)
		_, content := s.leaf(ctx, one, "older")
		backup, err := x.Fleet.Member(one).Snapshot(ctx)
		Expect(err).NotTo(HaveOccurred())
		age := suite.Aging(ctx, x, one)
		newer := s.ready(ctx, "newer", "data", deletes)
		retained := s.ready(ctx, "retained", "data", keeps)
		_, kept := s.leaf(ctx, one, "retained")
		taken := s.taken(one, "data")
		age()

		Expect(x.Fleet.Member(one).Restore(ctx, backup)).To(Succeed())
		registration(ctx, one, says(v1alpha1.ConditionConnected, metav1.ConditionTrue, v1alpha1.ReasonMemberRestored))
		s.problem(ctx, newer, v1alpha1.ReasonSnapshotLost, one)
		for _, name := range []string{"older", "newer"} {
			s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, name)
		}
		By("checking that the host's contents are kept, because they are the last records of the snapshots")
		s.data(ctx, "barrier", nodeOne)
		for _, vs := range []*snapshotv1.VolumeSnapshot{older, newer} {
			until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(vs), HaveField("DeletionTimestamp", Not(BeNil())))
		}
		Expect(s.taken(one, "data")).To(ConsistOf(taken))

		By("confirming the restore of the member")
		suite.ConfirmRestore(ctx, x, one, v1alpha1.ReasonMemberRestored)
		for _, vs := range []*snapshotv1.VolumeSnapshot{older, newer} {
			gone[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(vs))
		}
		left := s.taken(one, "data")
		Expect(left).To(And(HaveLen(2), ContainElement(*kept.Status.SnapshotHandle), Not(ContainElement(*content.Status.SnapshotHandle))))
		left = slices.DeleteFunc(left, func(handle string) bool { return handle == *kept.Status.SnapshotHandle })

		By("recording the snapshot that the member no longer has, but not the one that Xylem destroyed")
		s.noted(ctx, "VolumeSnapshotContent", contentName(newer), v1alpha1.ReasonSnapshotLost, left[0], one)
		registered, err := suite.Read[v1alpha1.ClusterRegistration](ctx, x.Host, "", one)
		Expect(err).NotTo(HaveOccurred())
		Expect(suite.LetGo(ctx, x, registered.Status.ClusterID)).To(And(ContainSubstring(left[0]), Not(ContainSubstring(*content.Status.SnapshotHandle))))

		By("deleting the content of a snapshot that the host retained, and the member no longer has: it is recorded, too")
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, "retained")
		gone[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "retained")
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshotContent{}, contentName(retained))
		gone[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(retained))
		s.noted(ctx, "VolumeSnapshotContent", contentName(retained), v1alpha1.ReasonSnapshotLost, *kept.Status.SnapshotHandle, one)
		Expect(suite.LetGo(ctx, x, registered.Status.ClusterID)).To(ContainSubstring(*kept.Status.SnapshotHandle))
	}, SpecTimeout(storyTime))

	It("survives the deletion of its namespace in the member (I2)", func(ctx SpecContext) {
		s := begin(ctx)
		s.data(ctx, "data", nodeOne)
		vs := s.ready(ctx, "snap", "data", deletes)
		Expect(x.Member(one).API.Delete(ctx, &corev1.Namespace{ObjectMeta: named(s.namespace)})).To(Succeed())
		s.problem(ctx, vs, v1alpha1.ReasonSnapshotLost, "somebody deleted VolumeSnapshot")
		Expect(s.taken(one, "data")).To(HaveLen(1))
	}, SpecTimeout(storyTime))
})
