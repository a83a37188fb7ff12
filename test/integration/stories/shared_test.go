package stories_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// withModes sets the access modes of a claim.
func withModes(modes ...corev1.PersistentVolumeAccessMode) claimOption {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.AccessModes = modes }
}

var many = withModes(corev1.ReadWriteMany)

// Members owner and user share a backend. Member stranger names the same backend, but its admin does
// not allow copies.
var _ = Describe("A shared volume", suite.Slow, Ordered, func() {
	const (
		owner, user, stranger = "cluster44", "cluster45", "cluster46"
		backend               = "files"
		onOwner, onUser       = "kosmos-" + owner, "kosmos-" + user
		onStranger            = "kosmos-" + stranger
		driver                = controlplane.DefaultDriverName
	)
	BeforeAll(func(ctx SpecContext) {
		for _, name := range []string{owner, user, stranger} {
			m, err := x.AddMember(ctx, memberOptions(name))
			Expect(err).NotTo(HaveOccurred())
			if name != stranger {
				Expect(m.AllowCopies(ctx, driver)).To(Succeed())
			}
			Expect(x.Register(ctx, name, name, harness.Shares(backend, driver, classMirror))).To(Succeed())
			DeferCleanup(func(ctx SpecContext) {
				if CurrentSpecReport().Failed() {
					x.Dump(ctx, GinkgoWriter, "")
				}
				deregister(ctx, name)
				Expect(x.RemoveMember(ctx, name)).To(Succeed())
			}, NodeTimeout(storyTime))
		}
	}, NodeTimeout(2*storyTime))

	// provisioned creates a claim and a Pod in the owner, and returns the host PV.
	provisioned := func(ctx context.Context, s *story, options ...claimOption) *corev1.PersistentVolume {
		GinkgoHelper()
		s.claim(ctx, "data", options...)
		s.pod(ctx, "first", using("data"), on(onOwner))
		s.running(ctx, "first", onOwner)
		return until[corev1.PersistentVolume](ctx, s, x.Host, s.bound(ctx, "data").Spec.VolumeName, phase(corev1.VolumeBound))
	}
	// copiesOf returns a member's PVs that are copies of a host PV's volume.
	copiesOf := func(ctx context.Context, member, host string) []corev1.PersistentVolume {
		GinkgoHelper()
		found, err := x.Member(member).CopiesOf(ctx, host)
		Expect(err).NotTo(HaveOccurred())
		return found
	}
	copiedIn := func(ctx context.Context, member string) string {
		GinkgoHelper()
		id, err := x.Member(member).ID(ctx)
		Expect(err).NotTo(HaveOccurred())
		return v1alpha1.FinalizerCopyPrefix + id
	}
	// used runs a Pod with the claim in the member that does not own the volume.
	used := func(ctx context.Context, s *story, pod string) {
		GinkgoHelper()
		s.pod(ctx, pod, using("data"), on(onUser))
		s.running(ctx, pod, onUser)
	}
	// ended checks that nothing is left of a volume and its copy, and that the disk was deleted once.
	ended := func(ctx context.Context, s *story, host string) {
		GinkgoHelper()
		s.destroyed(ctx, owner, "data", host)
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Member(user), "data")
		Expect(copiesOf(ctx, user, host)).To(BeEmpty())
		Expect(s.book(owner, "data").Count(ledger.CreateVolume)).To(Equal(1))
		Expect(s.book(user, "data").Count(ledger.CreateVolume)).To(BeZero())
	}

	// removed deletes the Pods and the claim, and then calls ended.
	removed := func(ctx context.Context, s *story, host string) {
		GinkgoHelper()
		s.deletePod(ctx, "first")
		s.deletePod(ctx, "second")
		s.deleteClaim(ctx, "data")
		ended(ctx, s, host)
	}

	It("is provisioned once, used by Pods in both members, and destroyed after its copy (I1, I3, I5, I6)", func(ctx SpecContext) {
		s := begin(ctx)
		host := provisioned(ctx, s, many)
		Expect(host.Finalizers).NotTo(ContainElement(HavePrefix(v1alpha1.FinalizerCopyPrefix)), "no member needs a copy yet")

		used(ctx, s, "second")
		host = until[corev1.PersistentVolume](ctx, s, x.Host, host.Name, HaveField("Finalizers", ContainElement(copiedIn(ctx, user))))
		leaf := until[corev1.PersistentVolume](ctx, s, x.Member(owner), host.Name, phase(corev1.VolumeBound))
		copies := copiesOf(ctx, user, host.Name)
		Expect(copies).To(HaveLen(1))
		Expect(copies[0].Spec.CSI.Driver).To(Equal(driver))
		Expect(copies[0].Spec.CSI.VolumeHandle).To(Equal(leaf.Spec.CSI.VolumeHandle))
		for key, value := range copies[0].Spec.CSI.VolumeAttributes {
			Expect(leaf.Spec.CSI.VolumeAttributes).To(HaveKeyWithValue(key, value))
		}
		Expect(copies[0].Spec.CSI.VolumeAttributes).To(HaveLen(len(leaf.Spec.CSI.VolumeAttributes)-1), "all but the provisioner's identity")
		Expect(copies[0].Spec.PersistentVolumeReclaimPolicy).To(Equal(corev1.PersistentVolumeReclaimRetain))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Member(user), "data", And(phase(corev1.ClaimBound), HaveField("Spec.VolumeName", copies[0].Name)))

		Expect(strangers("root PersistentVolume", host)).To(BeEmpty())
		Expect(strangers("copy", &copies[0])).To(BeEmpty())

		By("checking that the objects stay as they are, also after a restart of the manager")
		claimed, err := read[corev1.PersistentVolumeClaim](ctx, s, x.Member(user), "data")
		Expect(err).NotTo(HaveOccurred())
		Expect(x.Manager.Restart(ctx)).To(Succeed())
		s.barrier(ctx, onUser)
		s.barrier(ctx, onOwner)
		Expect(writes(until[corev1.PersistentVolume](ctx, s, x.Host, host.Name, phase(corev1.VolumeBound)))).To(Equal(writes(host)))
		Expect(writes(until[corev1.PersistentVolumeClaim](ctx, s, x.Member(user), "data", phase(corev1.ClaimBound)))).To(Equal(writes(claimed)))

		By("deleting the Pods and the claim")
		removed(ctx, s, host.Name)
	}, SpecTimeout(storyTime))

	It("can be used in another member while its own member is away", suite.Core, func(ctx SpecContext) {
		s := begin(ctx)
		host := provisioned(ctx, s, withModes(corev1.ReadOnlyMany))
		back := cutOff(ctx, owner, controlplane.Cut)
		used(ctx, s, "second")
		back()
		Expect(x.AwaitReady(ctx, owner)).To(Succeed())
		removed(ctx, s, host.Name)
	}, SpecTimeout(storyTime))

	It("does not tie a Pod with another, new claim to the volume's own member, which is away", func(ctx SpecContext) {
		s := begin(ctx)
		host := provisioned(ctx, s, many)
		back := cutOff(ctx, owner, controlplane.Cut)
		s.claim(ctx, "own")
		s.pod(ctx, "second", using("data"), using("own"), on(onUser))
		s.running(ctx, "second", onUser)
		Expect(s.book(user, "own").LiveIDs()).To(HaveLen(1))
		back()
		Expect(x.AwaitReady(ctx, owner)).To(Succeed())
		removed(ctx, s, host.Name)
	}, SpecTimeout(storyTime))

	It("is not destroyed while a member with a copy is away, and Xylem reports the member (I2)", func(ctx SpecContext) {
		s := begin(ctx)
		host := provisioned(ctx, s, many)
		used(ctx, s, "second")
		s.deletePod(ctx, "second")
		gone[corev1.Pod](ctx, s, x.Host, "second")
		back := cutOff(ctx, user, controlplane.Cut)
		s.deletePod(ctx, "first")
		s.deleteClaim(ctx, "data")
		until[corev1.PersistentVolume](ctx, s, x.Host, host.Name, phase(corev1.VolumeReleased))
		s.noted(ctx, "PersistentVolume", host.Name, v1alpha1.ReasonStillNeeded, `member "`+user+`"`, "make it reachable, or deregister it")
		s.barrier(ctx, onOwner)
		Expect(s.book(owner, "data").LiveIDs()).To(HaveLen(1))
		until[corev1.PersistentVolume](ctx, s, x.Member(owner), host.Name, HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimRetain))
		back()
		Expect(x.AwaitReady(ctx, user)).To(Succeed())
		ended(ctx, s, host.Name)
	}, SpecTimeout(storyTime))

	It("gets a new copy if the member's admin deletes the copy", func(ctx SpecContext) {
		s := begin(ctx)
		host := provisioned(ctx, s, many)
		used(ctx, s, "second")
		s.deletePod(ctx, "second")
		gone[corev1.Pod](ctx, s, x.Member(user), "second")
		before := copiesOf(ctx, user, host.Name)[0]
		Expect(x.Member(user).API.Delete(ctx, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "data"}})).To(Succeed())
		Eventually(ctx, func() []corev1.PersistentVolume { return copiesOf(ctx, user, host.Name) }).Should(BeEmpty())
		used(ctx, s, "third")

		By("deleting the PV instead, which Kubernetes keeps while it is Bound")
		s.deletePod(ctx, "third")
		gone[corev1.Pod](ctx, s, x.Member(user), "third")
		after := copiesOf(ctx, user, host.Name)[0]
		Expect(after.UID).NotTo(Equal(before.UID))
		Expect(x.Member(user).API.Delete(ctx, &after)).To(Succeed())
		patch(ctx, x.Member(user), &after, `{"metadata":{"finalizers":null}}`)
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Member(user), "data") // it has lost its volume
		used(ctx, s, "fourth")

		By("deleting the claim while a Pod uses it: another Pod waits, and reports why")
		Expect(x.Member(user).API.Delete(ctx, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "data"}})).To(Succeed())
		s.pod(ctx, "fifth", using("data"), on(onUser))
		until[corev1.Pod](ctx, s, x.Host, "fifth", tells(v1alpha1.ReasonVolumeTerminating, host.Name, user))
		s.deletePod(ctx, "fourth")
		s.running(ctx, "fifth", onUser)
		Expect(s.book(owner, "data").LiveIDs()).To(HaveLen(1))
	}, SpecTimeout(storyTime))

	It("keeps its data if the member's admin sets the copy to Delete: Xylem sets it back to Retain, and removes it only then (I1, I2)", func(ctx SpecContext) {
		s := begin(ctx)
		host := provisioned(ctx, s, many)
		used(ctx, s, "second")
		m := x.Member(user)
		made := copiesOf(ctx, user, host.Name)[0]
		patch(ctx, m, made.DeepCopy(), `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
		kept := until[corev1.PersistentVolume](ctx, s, m, made.Name, HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimRetain))
		Expect(kept.UID).To(Equal(made.UID))
		Expect(kept.ManagedFields).To(ContainElement(HaveField("Manager", "xylem-shared-pv")))
		for _, pod := range []string{"first", "second"} {
			s.deletePod(ctx, pod)
			gone[corev1.Pod](ctx, s, x.Host, pod)
		}

		By("setting it to Delete while no manager runs, and deleting the claim")
		Expect(x.Manager.Stop()).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(x.Manager.Start(ctx)).To(Succeed()) }, NodeTimeout(settle))
		patch(ctx, m, made.DeepCopy(), `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
		s.deleteClaim(ctx, "data")
		until[corev1.PersistentVolume](ctx, s, x.Host, host.Name, phase(corev1.VolumeReleased))
		Expect(x.Manager.Start(ctx)).To(Succeed())
		ended(ctx, s, host.Name)
		Expect(s.book(user, "data").Count(ledger.DeleteVolume)).To(BeZero())
	}, SpecTimeout(storyTime))

	It("stays in its own member if its access modes do not allow sharing", func(ctx SpecContext) {
		s := begin(ctx)
		host := provisioned(ctx, s, withModes(corev1.ReadWriteOnce, corev1.ReadOnlyMany))
		Expect(host.Spec.NodeAffinity.Required.NodeSelectorTerms).To(HaveLen(1))
		s.pod(ctx, "second", using("data"), boundTo(onUser))
		until[corev1.Pod](ctx, s, x.Host, "second", tells(v1alpha1.ReasonVolumeUnreachable, host.Name))
		Expect(copiesOf(ctx, user, host.Name)).To(BeEmpty())
	}, SpecTimeout(storyTime))

	It("stays in its own member if its attributes cannot be recorded, and an event reports this", func(ctx SpecContext) {
		s := begin(ctx)
		odd := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "odd-" + s.namespace}}
		odd.Spec = corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, StorageClassName: classMirror,
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: driver, VolumeHandle: odd.Name, VolumeAttributes: map[string]string{"note": strings.Repeat("x", 20<<10)},
			}},
		}
		Expect(x.Member(owner).API.Create(ctx, odd)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(x.Member(owner).API.Delete(ctx, odd)).To(Succeed()) }, NodeTimeout(settle))
		host := provisioned(ctx, s, many) // the member binds the claim to the existing volume
		Expect(host.Name).To(Equal(odd.Name))
		Expect(host.Spec.NodeAffinity.Required.NodeSelectorTerms).To(HaveLen(1))
		s.noted(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonNotShared, owner, odd.Name, backend)
	}, SpecTimeout(storyTime))

	It("is not copied without the permission of the member's admin, and the Pod reports this", func(ctx SpecContext) {
		s := begin(ctx)
		host := provisioned(ctx, s, many)
		s.pod(ctx, "second", using("data"), on(onStranger))
		until[corev1.Pod](ctx, s, x.Host, "second", tells(v1alpha1.ReasonRefusedByMember, `member "`+stranger+`"`, `claim "data"`, "persistentvolumes"))
		Expect(copiesOf(ctx, stranger, host.Name)).To(BeEmpty())

		By("deleting the Pod and the claim: the record of the attempt does not block the end")
		removed(ctx, s, host.Name)
	}, SpecTimeout(storyTime))

	It("is not copied over another claim, and the Pod reports the claim", func(ctx SpecContext) {
		s := begin(ctx)
		provisioned(ctx, s, many)
		s.pod(ctx, "other", on(onUser)) // creates the namespace in the member
		s.running(ctx, "other", onUser)
		foreign := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "data"}}
		foreign.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		foreign.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
		Expect(x.Member(user).API.Create(ctx, foreign)).To(Succeed())
		s.pod(ctx, "second", using("data"), on(onUser))
		until[corev1.Pod](ctx, s, x.Host, "second", tells(v1alpha1.ReasonNameTaken, s.namespace+"/data", user))
		Expect(x.Member(user).API.Delete(ctx, foreign)).To(Succeed())
		s.running(ctx, "second", onUser)
	}, SpecTimeout(storyTime))

	It("is not copied if the two registrations describe the backend differently", func(ctx SpecContext) {
		s := begin(ctx)
		host := provisioned(ctx, s, many)
		change := func(ctx context.Context, edit func(*v1alpha1.ClusterRegistration)) {
			GinkgoHelper()
			cr, err := read[v1alpha1.ClusterRegistration](ctx, s, x.Host, user)
			Expect(err).NotTo(HaveOccurred())
			before := cr.DeepCopy()
			edit(cr)
			Expect(x.Host.API.Patch(ctx, cr, client.MergeFrom(before))).To(Succeed())
		}
		DeferCleanup(func(ctx SpecContext) { change(ctx, harness.Shares(backend, driver, classMirror)) }, NodeTimeout(settle))
		change(ctx, harness.Shares(backend, "another.example.com", classMirror))
		s.pod(ctx, "second", using("data"), on(onUser))
		until[corev1.Pod](ctx, s, x.Host, "second", tells(v1alpha1.ReasonBackendMismatch, "another.example.com", driver, "spec.storage.shared"))
		change(ctx, harness.Shares(backend, driver, controlplane.ClassFast))
		until[corev1.Pod](ctx, s, x.Host, "second", tells(v1alpha1.ReasonBackendMismatch, classMirror, `"`+backend+`"`))
		Expect(copiesOf(ctx, user, host.Name)).To(BeEmpty())
		change(ctx, harness.Shares(backend, driver, classMirror))
		s.running(ctx, "second", onUser)
	}, SpecTimeout(storyTime))

	It("is released from a member with a copy that is deregistered", func(ctx SpecContext) {
		const leaver = "cluster47"
		m, err := x.AddMember(ctx, memberOptions(leaver))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(x.RemoveMember(ctx, leaver)).To(Succeed()) }, NodeTimeout(storyTime))
		Expect(m.AllowCopies(ctx, driver)).To(Succeed())
		Expect(x.Register(ctx, leaver, leaver, harness.Shares(backend, driver, classMirror))).To(Succeed())
		s := begin(ctx)
		host := provisioned(ctx, s, many)
		s.pod(ctx, "second", using("data"), on("kosmos-"+leaver))
		s.running(ctx, "second", "kosmos-"+leaver)
		s.deletePod(ctx, "second")
		gone[corev1.Pod](ctx, s, x.Host, "second")
		until[corev1.PersistentVolume](ctx, s, x.Host, host.Name, HaveField("Finalizers", ContainElement(copiedIn(ctx, leaver))))
		deregister(ctx, leaver)
		until[corev1.PersistentVolume](ctx, s, x.Host, host.Name, And(phase(corev1.VolumeBound), HaveField("Finalizers", Not(ContainElement(copiedIn(ctx, leaver))))))
		Expect(copiesOf(ctx, leaver, host.Name)).To(HaveLen(1), "the copy stays, with policy Retain")
		s.deletePod(ctx, "first")
		s.deleteClaim(ctx, "data")
		s.destroyed(ctx, owner, "data", host.Name)
	}, SpecTimeout(storyTime))

	It("gets the mount options of each member's own class", func(ctx SpecContext) {
		class := &storagev1.StorageClass{}
		Expect(x.Member(user).API.Get(ctx, client.ObjectKey{Name: classMirror}, class)).To(Succeed())
		Expect(class.MountOptions).To(BeEmpty())
		replacement := class.DeepCopy()
		replacement.ResourceVersion, replacement.UID, replacement.MountOptions = "", "", []string{"nfsvers=4.2"}
		Expect(x.Member(user).API.Delete(ctx, class)).To(Succeed())
		Expect(x.Member(user).API.Create(ctx, replacement)).To(Succeed())
		s := begin(ctx)
		host := provisioned(ctx, s, many)
		used(ctx, s, "second")
		Expect(copiesOf(ctx, user, host.Name)[0].Spec.MountOptions).To(Equal([]string{"nfsvers=4.2"}))
	}, SpecTimeout(storyTime))
})
