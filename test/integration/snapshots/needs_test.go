package snapshots_test

import (
	"context"
	"maps"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/csidriver"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// promises creates a class in promise mode with additional parameters, and returns its name.
func (s *story) promises(ctx SpecContext, more map[string]string) string {
	GinkgoHelper()
	parameters := map[string]string{v1alpha1.ParameterProvisioning: v1alpha1.ProvisioningPromise, v1alpha1.ParameterMemberClass: controlplane.ClassHostpath}
	maps.Copy(parameters, more)
	class := harness.HostClass("promise-"+s.namespace, parameters)
	Expect(x.Host.Create(ctx, class)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(x.Host.API.Delete(ctx, class)).To(Succeed()) }, NodeTimeout(settle))
	return class.Name
}

// content returns the content of the claim's only disk.
func (s *story) content(member, claim string) string {
	GinkgoHelper()
	disks := s.book(member, claim).LiveIDs()
	Expect(disks).To(HaveLen(1))
	content, err := csidriver.ReadData(x.Fleet.Member(member).DriverDir(), disks[0])
	Expect(err).NotTo(HaveOccurred())
	return content
}

var _ = Describe("Data that others need", func() {
	It("is kept in its snapshot until the claim that will be restored from it has its disk, although the claim is Bound to a promise (I2)", func(ctx SpecContext) {
		s := begin(ctx)
		s.golden(ctx, deletes)
		s.restore(ctx, "copy", "golden", ofClass(s.promises(ctx, nil)))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", HaveField("Status.Phase", corev1.ClaimBound))
		By("deleting the snapshot, as the Bound claim invites to")
		snapshot := until[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "golden", isReady(true))
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, "golden")
		until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(snapshot), fails(`claim "copy"`, "create a Pod for each"))
		Expect(s.taken(two, "data")).To(HaveLen(1))

		By("restarting the manager, and using the claim (I6)")
		Expect(x.Manager.Restart(ctx)).To(Succeed())
		s.uses(ctx, "app", nodeTwo, "copy")
		s.running(ctx, "app", nodeTwo)
		s.restored(ctx, "copy")
		gone[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(snapshot))
		Eventually(ctx, func() []string { return s.taken(two, "data") }).Should(BeEmpty())
	}, SpecTimeout(storyTime))

	It("is kept in the disk of a claim that is gone until its clone has its disk (I1, I2)", func(ctx SpecContext) {
		s := begin(ctx)
		volume := s.data(ctx, "data", nodeTwo).Spec.VolumeName
		s.write(two, "data", s.goldenData())
		claim := harness.Claim(s.namespace, "copy", s.promises(ctx, nil))
		claim.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "data"}
		Expect(x.Host.Create(ctx, claim)).To(Succeed())
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", HaveField("Status.Phase", corev1.ClaimBound))
		By("deleting the source claim")
		s.remove(ctx, x.Host, &corev1.Pod{}, "data")
		s.remove(ctx, x.Host, &corev1.PersistentVolumeClaim{}, "data")
		s.noted(ctx, "PersistentVolume", volume, v1alpha1.ReasonStillNeeded, `claim "copy"`, "create a Pod for each")
		Expect(s.content(two, "data")).To(Equal(s.goldenData()))

		By("using the clone")
		s.uses(ctx, "app", nodeTwo, "copy")
		s.running(ctx, "app", nodeTwo)
		s.restored(ctx, "copy")
		gone[corev1.PersistentVolume](ctx, s, x.Host, volume)
		Eventually(ctx, func() []string { return s.book(two, "data").LiveIDs() }).Should(BeEmpty())
	}, SpecTimeout(storyTime))

	It("is destroyed once the claim that was to be cloned from it is deleted (I1)", func(ctx SpecContext) {
		s := begin(ctx)
		volume := s.data(ctx, "data", nodeTwo).Spec.VolumeName
		claim := harness.Claim(s.namespace, "copy", s.promises(ctx, nil))
		claim.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "data"}
		Expect(x.Host.Create(ctx, claim)).To(Succeed())
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", HaveField("Status.Phase", corev1.ClaimBound))
		s.remove(ctx, x.Host, &corev1.Pod{}, "data")
		s.remove(ctx, x.Host, &corev1.PersistentVolumeClaim{}, "data")
		s.noted(ctx, "PersistentVolume", volume, v1alpha1.ReasonStillNeeded, "delete these claims")
		s.remove(ctx, x.Host, claim, "copy")
		gone[corev1.PersistentVolume](ctx, s, x.Host, volume)
	}, SpecTimeout(storyTime))

	It("is not released with its last Pod while a snapshot of it is to be taken (I2)", func(ctx SpecContext) {
		s := begin(ctx)
		class := s.promises(ctx, map[string]string{v1alpha1.ParameterRelease: v1alpha1.ReleaseWhenUnused, v1alpha1.ParameterReleaseGrace: "1s"})
		Expect(x.Host.Create(ctx, harness.Claim(s.namespace, "data", class))).To(Succeed())
		s.uses(ctx, "job", nodeOne, "data")
		s.running(ctx, "job", nodeOne)
		first := s.book(one, "data").LiveIDs()
		Expect(first).To(HaveLen(1))
		By("taking a snapshot of the Job's results while the member's snapshot-controller is down")
		program := x.Fleet.Member(one).Process(controlplane.SnapshotController)
		Expect(program.Stop(ctx)).To(Succeed())
		started := false
		start := func(ctx context.Context) {
			if !started {
				started = true
				Expect(program.Start(ctx)).To(Succeed())
			}
		}
		DeferCleanup(func(ctx SpecContext) { start(ctx) }, NodeTimeout(settle))
		s.take(ctx, "results", "data", deletes)
		until[snapshotv1.VolumeSnapshot](ctx, s, x.Member(one), "results", Not(BeNil()))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", HaveField("Finalizers", ContainElement(mirrorsnapshot.FinalizerSource)))

		By("ending the Job's Pod")
		s.remove(ctx, x.Host, &corev1.Pod{}, "job")
		gone[corev1.Pod](ctx, s, x.Host, "job")
		Consistently(ctx, func() []string { return s.book(one, "data").LiveIDs() }).WithTimeout(12 * time.Second).WithPolling(time.Second).Should(Equal(first))

		By("starting the snapshot-controller: then the disk is released")
		start(ctx)
		ready := until[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "results", isReady(true))
		_, content := s.leaf(ctx, one, "results")
		Expect(content.Spec.Source.VolumeHandle).To(HaveValue(Equal(first[0])))
		host := until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(ready), Not(BeNil()))
		Expect(host.Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationSource, first[0]))
		Eventually(ctx, func() []string { return s.book(one, "data").LiveIDs() }).Should(BeEmpty())
		Expect(s.taken(one, "data")).To(HaveLen(1))
	}, SpecTimeout(storyTime))
})

// A backup tool that restores a namespace in a member creates its objects again, with Xylem's stamps. The
// disk that it fills may have the newest data.
var _ = Describe("A claim that a backup tool restores in a member", func() {
	// backup returns what the tool keeps of a leaf claim, and loses the leaf claim.
	backup := func(ctx context.Context, s *story, name string) *corev1.PersistentVolumeClaim {
		GinkgoHelper()
		leaf := until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), name, HaveField("Status.Phase", corev1.ClaimBound))
		kept := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: leaf.Namespace, Name: name, Labels: leaf.Labels, Annotations: map[string]string{}}, Spec: leaf.Spec}
		for _, key := range []string{v1alpha1.AnnotationRoot, v1alpha1.AnnotationRootUID} {
			kept.Annotations[key] = leaf.Annotations[key]
		}
		kept.Spec.VolumeName, kept.ManagedFields = "", leaf.ManagedFields
		return kept
	}
	// restore creates the claim in a member, as the member's admin, with a Pod that mounts it, and returns the new disk.
	// With managed fields, it then restores those, too, as of a backup that is an hour old.
	restore := func(ctx context.Context, s *story, member string, kept *corev1.PersistentVolumeClaim, managedFields bool) string {
		GinkgoHelper()
		c := x.Member(member)
		created := kept.DeepCopy()
		created.ManagedFields = nil
		Expect(c.API.Create(ctx, created)).To(Succeed())
		if managedFields {
			before := created.DeepCopy()
			created.ManagedFields = kept.DeepCopy().ManagedFields
			for i := range created.ManagedFields {
				created.ManagedFields[i].Time.Time = created.ManagedFields[i].Time.Add(-time.Hour)
			}
			Expect(c.API.Patch(ctx, created, client.MergeFrom(before))).To(Succeed())
			Expect(created.ManagedFields).To(ContainElement(HaveField("Manager", "xylem-root-pvc")))
		}
		helper := harness.Pod(s.namespace, "restores", kept.Name)
		helper.Spec.Tolerations = nil
		Expect(c.Create(ctx, helper)).To(Succeed())
		claim := until[corev1.PersistentVolumeClaim](ctx, s, c, kept.Name, HaveField("Status.Phase", corev1.ClaimBound))
		disk := until[corev1.PersistentVolume](ctx, s, c, claim.Spec.VolumeName, Not(BeNil())).Spec.CSI.VolumeHandle
		Expect(c.API.Delete(ctx, helper)).To(Succeed())
		return disk
	}
	keepsDisk := func(ctx context.Context, s *story, member, disk string) {
		GinkgoHelper()
		s.goesOn(ctx, "barrier", "other")
		Consistently(ctx, func() []string { return s.book(member, "data").LiveIDs() }).WithTimeout(10 * time.Second).WithPolling(time.Second).Should(ContainElement(disk))
	}

	DescribeTable("keeps its new disk (I2, I4)", func(ctx SpecContext, retained, managedFields bool) {
		s := begin(ctx)
		s.data(ctx, "other", nodeOne)
		volume := s.data(ctx, "data", nodeOne).Spec.VolumeName
		earlier := s.book(one, "data").LiveIDs()[0]
		if retained {
			patch(ctx, x.Host, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}}, `{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`)
		}
		kept := backup(ctx, s, "data")
		end := func() {
			s.remove(ctx, x.Host, &corev1.Pod{}, "data")
			s.remove(ctx, x.Host, &corev1.PersistentVolumeClaim{}, "data")
			gone[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data")
		}
		if !retained {
			end()
			Eventually(ctx, func() []string { return s.book(one, "data").LiveIDs() }).Should(BeEmpty())
		}
		By("losing the leaf objects while the manager is stopped, and restoring them")
		Expect(x.Manager.Kill()).To(Succeed())
		if retained {
			Expect(x.Member(one).API.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "data"}})).To(Succeed())
			Expect(x.Member(one).API.Delete(ctx, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "data"}})).To(Succeed())
		}
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data")
		disk := restore(ctx, s, one, kept, managedFields)
		Expect(disk).NotTo(Equal(earlier))
		Expect(x.Manager.Start(ctx)).To(Succeed())
		Expect(x.AwaitReady(ctx, one)).To(Succeed())
		if retained {
			end()
		}
		keepsDisk(ctx, s, one, disk)
		if retained {
			Expect(s.book(one, "data").LiveIDs()).To(ContainElement(earlier))
		}
	},
		Entry("after its root was deleted", false, false, SpecTimeout(storyTime)),
		Entry("after its root was deleted, if the tool restores managed fields", false, true, SpecTimeout(storyTime)),
		Entry("while its root is bound to the earlier disk", true, false, SpecTimeout(storyTime)),
	)

	It("keeps its new disk in another member (I2, I3, I4)", func(ctx SpecContext) {
		s := begin(ctx)
		s.data(ctx, "other", nodeOne)
		s.data(ctx, "elsewhere", nodeTwo) // creates the namespace in the other member
		volume := s.data(ctx, "data", nodeOne).Spec.VolumeName
		patch(ctx, x.Host, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}}, `{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`)
		disk := restore(ctx, s, two, backup(ctx, s, "data"), false)
		s.noted(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonSurplusVolume)
		s.remove(ctx, x.Host, &corev1.Pod{}, "data")
		s.remove(ctx, x.Host, &corev1.PersistentVolumeClaim{}, "data")
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data")
		keepsDisk(ctx, s, two, disk)
	}, SpecTimeout(storyTime))
})
