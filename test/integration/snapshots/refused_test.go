package snapshots_test

import (
	"context"
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// refused waits until a VolumeSnapshot's status and an event report why Xylem does not take it.
func (s *story) refused(ctx context.Context, name, reason string, parts ...string) {
	GinkgoHelper()
	until[snapshotv1.VolumeSnapshot](ctx, s, x.Host, name, And(fails(parts...), isReady(false)))
	s.noted(ctx, "VolumeSnapshot", name, reason, parts...)
}

// handOver creates a content and its VolumeSnapshot, as an admin does to import a snapshot.
func (s *story) handOver(ctx context.Context, name string, source snapshotv1.VolumeSnapshotContentSource) string {
	GinkgoHelper()
	content := &snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: "imported-" + s.namespace + "-" + name},
		Spec: snapshotv1.VolumeSnapshotContentSpec{
			Driver: v1alpha1.ProvisionerName, DeletionPolicy: policyDelete, VolumeSnapshotClassName: ptr.To(deletes),
			VolumeSnapshotRef: corev1.ObjectReference{Namespace: s.namespace, Name: name}, Source: source,
		},
	}
	Expect(x.Host.Create(ctx, content)).To(Succeed())
	vs := harness.VolumeSnapshot(s.namespace, name, "", deletes)
	vs.Spec.Source = snapshotv1.VolumeSnapshotSource{VolumeSnapshotContentName: &content.Name}
	Expect(x.Host.Create(ctx, vs)).To(Succeed())
	return content.Name
}

var _ = Describe("A snapshot that Xylem does not take", func() {
	It("has an unbound claim: Xylem reports the problem, and takes the snapshot once a Pod uses the claim", func(ctx SpecContext) {
		s := begin(ctx)
		Expect(x.Host.Create(ctx, harness.Claim(s.namespace, "data", controlplane.ClassHostpath))).To(Succeed())
		s.take(ctx, "snap", "data", deletes)
		until[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "snap", fails("not yet bound"))
		Expect(s.taken(one, "data")).To(BeEmpty())

		pod := harness.Pod(s.namespace, "data", "data")
		harness.OnNodes(pod, nodeOne)
		Expect(x.Host.Create(ctx, pod)).To(Succeed())
		until[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "snap", isReady(true))
		Expect(s.taken(one, "data")).To(HaveLen(1))
	}, SpecTimeout(storyTime))

	It("has a promise that no Pod has used: Xylem reports the problem, and takes the snapshot once the disk exists", func(ctx SpecContext) {
		s := begin(ctx)
		class := harness.HostClass(s.namespace, map[string]string{
			v1alpha1.ParameterProvisioning: v1alpha1.ProvisioningPromise, v1alpha1.ParameterMemberClass: controlplane.ClassHostpath,
		})
		Expect(x.Host.Create(ctx, class)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(x.Host.API.Delete(ctx, class)).To(Succeed()) }, NodeTimeout(settle))
		claim := harness.Claim(s.namespace, "data", class.Name)
		Expect(x.Host.Create(ctx, claim)).To(Succeed())
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", HaveField("Status.Phase", corev1.ClaimBound))
		s.take(ctx, "snap", "data", deletes)
		s.refused(ctx, "snap", v1alpha1.ReasonSnapshotSourceNotReady, `claim "data" has no disk yet`, "Start a Pod")

		pod := harness.Pod(s.namespace, "data", "data")
		harness.OnNodes(pod, nodeOne)
		Expect(x.Host.Create(ctx, pod)).To(Succeed())
		until[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "snap", And(isReady(true), HaveField("Status.Error", BeNil())))
	}, SpecTimeout(storyTime))

	It("is in a member that does not let Xylem read snapshots: Xylem reports the missing permission, and takes the snapshot once the member's admin grants it", func(ctx SpecContext) {
		s := begin(ctx)
		s.data(ctx, "data", nodeOne)
		role := &rbacv1.ClusterRole{}
		Expect(x.Member(one).API.Get(ctx, client.ObjectKey{Name: "xylem-member"}, role)).To(Succeed())
		granted := role.DeepCopy()
		role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.APIGroups, snapshotv1.GroupName) })
		Expect(role.Rules).NotTo(HaveLen(len(granted.Rules)))
		Expect(x.Member(one).API.Update(ctx, role)).To(Succeed())
		grant := func(ctx context.Context) {
			role.Rules = granted.Rules
			Expect(x.Member(one).API.Update(ctx, role)).To(Succeed())
		}
		DeferCleanup(func(ctx SpecContext) { grant(ctx) }, NodeTimeout(settle))
		restart(ctx)
		s.take(ctx, "snap", "data", deletes)
		s.refused(ctx, "snap", v1alpha1.ReasonSnapshotsUnsupported, one, "snapshot.storage.k8s.io", "grant the permissions from config/member")
		Expect(s.taken(one, "data")).To(BeEmpty())

		grant(ctx)
		until[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "snap", And(isReady(true), HaveField("Status.Error", BeNil())))
	}, SpecTimeout(storyTime))

	It("has a class that the member lacks: Xylem names the class, and takes the snapshot once the member has it", func(ctx SpecContext) {
		s := begin(ctx)
		s.data(ctx, "data", nodeOne)
		s.take(ctx, "snap", "data", unmapped)
		s.refused(ctx, "snap", v1alpha1.ReasonSnapshotClassNotFound, one, unmapped, "VolumeSnapshotClass")
		gone[snapshotv1.VolumeSnapshot](ctx, s, x.Member(one), "snap")

		class := controlplane.SnapshotClass(unmapped, policyDelete)
		class.Driver = controlplane.DefaultDriverName
		Expect(x.Member(one).Create(ctx, &class)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(x.Member(one).API.Delete(ctx, &class)).To(Succeed()) })
		until[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "snap", And(isReady(true), HaveField("Status.Error", BeNil())))
	}, SpecTimeout(storyTime))

	It("is in a namespace that the member no longer admits: Xylem reports the problem, and takes the snapshot once the member admits the namespace again", func(ctx SpecContext) {
		s := begin(ctx)
		s.data(ctx, "data", nodeOne)
		rules := func(ctx context.Context, labels string) {
			patch(ctx, x.Host, &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: one}}, `{"spec":{"namespaces":{"matchLabels":`+labels+`}}}`)
		}
		DeferCleanup(func(ctx SpecContext) { rules(ctx, "null") }, NodeTimeout(settle))
		rules(ctx, `{"example.com/team":"a"}`)
		registration(ctx, one, says(v1alpha1.ConditionNamespacesAdmitted, metav1.ConditionFalse, v1alpha1.ReasonNamespacesNotAdmitted, s.namespace))
		s.take(ctx, "snap", "data", deletes)
		s.refused(ctx, "snap", v1alpha1.ReasonNamespaceNotAdmitted, one, "does not admit namespace", s.namespace)
		gone[snapshotv1.VolumeSnapshot](ctx, s, x.Member(one), "snap")

		patch(ctx, x.Host, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, `{"metadata":{"labels":{"example.com/team":"a"}}}`)
		until[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "snap", And(isReady(true), HaveField("Status.Error", BeNil())))
	}, SpecTimeout(storyTime))

	It("has a class of another driver in the member: Xylem names the driver, and leaves no objects", func(ctx SpecContext) {
		s := begin(ctx)
		s.data(ctx, "data", nodeOne)
		class := controlplane.SnapshotClass("of-another-driver", policyDelete)
		class.Driver = "other.example.com"
		Expect(x.Member(one).Create(ctx, &class)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(x.Member(one).API.Delete(ctx, &class)).To(Succeed()) })
		host := harness.SnapshotClass(class.Name, policyDelete, nil)
		Expect(x.Host.Create(ctx, host)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(x.Host.API.Delete(ctx, host)).To(Succeed()) })

		vs := s.take(ctx, "snap", "data", class.Name)
		s.refused(ctx, "snap", v1alpha1.ReasonSnapshotClassMismatch, class.Name, class.Driver)
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, "snap")
		gone[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "snap")
		gone[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(vs))
	}, SpecTimeout(storyTime))

	It("has a class with the member's driver in the host: Xylem names the driver to use, and changes nothing (I4, I6)", func(ctx SpecContext) {
		s := begin(ctx)
		s.data(ctx, "data", nodeOne)
		class := harness.SnapshotClass("members-driver", policyDelete, nil)
		class.Driver = controlplane.DefaultDriverName
		Expect(x.Host.Create(ctx, class)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(x.Host.API.Delete(ctx, class)).To(Succeed()) })

		vs := s.take(ctx, "snap", "data", class.Name)
		s.noted(ctx, "VolumeSnapshot", "snap", v1alpha1.ReasonSnapshotClassMismatch, class.Name, class.Driver, v1alpha1.ProvisionerName, contentName(vs))
		content := until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(vs), HaveField("Annotations", Not(HaveKey(v1alpha1.AnnotationPlacedIn))))
		Expect(content.Status).To(Or(BeNil(), HaveField("Error", BeNil())))

		By("following the message")
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, "snap")
		until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, content.Name, HaveField("DeletionTimestamp", Not(BeNil())))
		patch(ctx, x.Host, content, `{"metadata":{"finalizers":null}}`)
		gone[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "snap")
	}, SpecTimeout(storyTime))

	It("has a volume of another driver: Xylem reports the problem, and the snapshot can be deleted", func(ctx SpecContext) {
		s := begin(ctx)
		foreign := &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "foreign-" + s.namespace},
			Spec: corev1.PersistentVolumeSpec{
				Capacity: harness.Claim("", "", "").Spec.Resources.Requests, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
				ClaimRef:                      &corev1.ObjectReference{Namespace: s.namespace, Name: "theirs"},
				PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "other.example.com", VolumeHandle: "their-disk"}},
			},
		}
		Expect(x.Host.Create(ctx, foreign)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(x.Host.API.Delete(ctx, foreign)).To(Succeed()) })
		claim := harness.Claim(s.namespace, "theirs", "")
		claim.Spec.VolumeName = foreign.Name
		Expect(x.Host.Create(ctx, claim)).To(Succeed())
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "theirs", HaveField("Status.Phase", corev1.ClaimBound))

		vs := s.take(ctx, "snap", "theirs", deletes)
		s.refused(ctx, "snap", v1alpha1.ReasonSnapshotSourceInvalid, "other.example.com", deletes)
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, "snap")
		gone[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "snap")
		gone[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(vs))
	}, SpecTimeout(storyTime))

	It("has the handle of another tenant's snapshot: Xylem rejects it, and its deletion destroys no data (I2, I8)", func(ctx SpecContext) {
		victim := begin(ctx)
		victim.data(ctx, "data", nodeOne)
		stolen := handleOf(until[snapshotv1.VolumeSnapshotContent](ctx, victim, x.Host, contentName(victim.ready(ctx, "snap", "data", deletes)), isReady(true)))
		s := begin(ctx)
		content := s.handOver(ctx, "snap", snapshotv1.VolumeSnapshotContentSource{SnapshotHandle: &stolen})
		until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, content, fails("does not import snapshots"))
		until[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "snap", And(fails("does not import snapshots"), isReady(false)))

		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, "snap")
		gone[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "snap")
		gone[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, content)
		victim.goesOn(ctx, "later", "data")
		Expect(victim.taken(one, "data")).To(HaveLen(2))
		until[snapshotv1.VolumeSnapshot](ctx, victim, x.Host, "snap", isReady(true))
	}, SpecTimeout(storyTime))

	It("has the handle of another tenant's volume: Xylem takes no snapshot of that volume (I8)", func(ctx SpecContext) {
		victim := begin(ctx)
		claim := victim.data(ctx, "data", nodeOne)
		volume := until[corev1.PersistentVolume](ctx, victim, x.Host, claim.Spec.VolumeName, Not(BeNil()))
		s := begin(ctx)
		content := s.handOver(ctx, "snap", snapshotv1.VolumeSnapshotContentSource{VolumeHandle: &volume.Spec.CSI.VolumeHandle})
		until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, content, fails("does not import snapshots"))
		until[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "snap", isReady(false))
		victim.goesOn(ctx, "own", "data")
		Expect(victim.book(one, "data").Count(ledger.CreateSnapshot)).To(Equal(1))

		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, "snap")
		gone[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "snap")
		By("deleting the content as an admin, because the snapshot-controller never bound it")
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshotContent{}, content)
		gone[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, content)
	}, SpecTimeout(storyTime))

	It("has the name of an existing snapshot in the member: Xylem does not change that snapshot, and reports the conflict (I4)", func(ctx SpecContext) {
		s := begin(ctx)
		s.data(ctx, "data", nodeOne)
		theirs := harness.VolumeSnapshot(s.namespace, "snap", "data", deletes)
		Expect(x.Member(one).Create(ctx, theirs)).To(Succeed())
		until[snapshotv1.VolumeSnapshot](ctx, s, x.Member(one), "snap", isReady(true))

		s.take(ctx, "snap", "data", deletes)
		s.refused(ctx, "snap", v1alpha1.ReasonNameTaken, one, "did not create")
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, "snap")
		gone[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "snap")
		s.goesOn(ctx, "later", "data")
		until[snapshotv1.VolumeSnapshot](ctx, s, x.Member(one), "snap", And(isReady(true), HaveField("UID", theirs.UID)))
		s.remove(ctx, x.Member(one), &snapshotv1.VolumeSnapshot{}, "snap")
	}, SpecTimeout(storyTime))
})
