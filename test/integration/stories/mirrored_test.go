package stories_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/csidriver"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

var _ = Describe("A leaf claim that is deleted before the host has bound its volume's mirror", func() {
	// mirrored creates a claim and a Pod, and returns when the host has a PV for the claim. The
	// host's PV controller is stopped, and does not bind the PV until the returned function is
	// called.
	mirrored := func(ctx SpecContext, s *story, class string) (leaf *corev1.PersistentVolumeClaim, mirror *corev1.PersistentVolume, goOn func()) {
		GinkgoHelper()
		member := x.Member(one)
		By("slowing down the member's driver")
		Expect(member.SetFaults(csidriver.Fault{Method: ledger.CreateVolume, Claim: s.namespace + "/data", Stall: true})).To(Succeed())
		DeferCleanup(func() error { return member.SetFaults() })
		s.claim(ctx, "data", ofClass(class))
		s.pod(ctx, "app", using("data"), on(nodeOne), func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever })
		leaf = until[corev1.PersistentVolumeClaim](ctx, s, member, "data", Not(BeNil()))

		By("stopping the host's PV controller while the disk is provisioned and mirrored")
		binder := x.Fleet.Host.Process(controlplane.ControllerManager)
		Expect(binder.Freeze()).To(Succeed())
		DeferCleanup(binder.Thaw)
		Expect(member.SetFaults()).To(Succeed())
		mirror = until[corev1.PersistentVolume](ctx, s, x.Host, "pvc-"+string(leaf.UID), HaveField("Spec.ClaimRef.Name", "data"))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", phase(corev1.ClaimPending))
		return leaf, mirror, func() {
			GinkgoHelper()
			By("letting the PV controller continue: it binds the claim to the first volume")
			Expect(binder.Thaw()).To(Succeed())
			Expect(s.bound(ctx, "data").Spec.VolumeName).To(Equal(mirror.Name))
		}
	}

	It("is re-created for that volume, and no second volume is provisioned or mirrored (I1, I3)", func(ctx SpecContext) {
		s := begin(ctx)
		member := x.Member(one)
		leaf, mirror, goOn := mirrored(ctx, s, classMapped) // the leaf claim needs no leaf Pod, because its class is Immediate

		By("deleting the leaf claim as the member's admin: its volume is kept")
		Expect(member.API.Delete(ctx, leaf)).To(Succeed())
		gone[corev1.PersistentVolumeClaim](ctx, s, member, "data")
		until[corev1.PersistentVolume](ctx, s, member, mirror.Name, phase(corev1.VolumeReleased))
		s.pushedNext(ctx)
		_, err := read[corev1.PersistentVolumeClaim](ctx, s, member, "data")
		Expect(err).To(MatchError(ContainSubstring("not found")), "Xylem must not create another leaf claim yet, because it would get another disk")

		goOn()
		s.running(ctx, "app", nodeOne)
		until[corev1.PersistentVolume](ctx, s, x.Host, mirror.Name, And(phase(corev1.VolumeBound), HaveField("UID", mirror.UID)))
		again := until[corev1.PersistentVolumeClaim](ctx, s, member, "data", And(phase(corev1.ClaimBound), HaveField("Spec.VolumeName", mirror.Name)))
		Expect(again.UID).NotTo(Equal(leaf.UID))
		Expect(s.book(one, "data").Count(ledger.CreateVolume)).To(Equal(1))
		Expect(s.mirrorsOf(ctx, "data")).To(ConsistOf(mirror.Name))
	}, SpecTimeout(storyTime))

	It("is reported, with a remedy, if somebody deletes the mirror first", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		_, mirror, _ := mirrored(ctx, s, classMirror)
		Expect(x.Host.API.Delete(ctx, mirror)).To(Succeed())
		s.shown(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonVolumeTerminating, mirror.Name, "Delete the claim and create it again")
		s.why(ctx, "Pod", "app", v1alpha1.ReasonVolumeTerminating, mirror.Name, "Delete the claim and create it again")
	}, SpecTimeout(storyTime))

	It("makes its Pod fail, because the Pod has already run and must not run again (I6)", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		member := x.Member(one)
		mark, err := member.Audit().Mark(ctx)
		Expect(err).NotTo(HaveOccurred())
		leaf, _, goOn := mirrored(ctx, s, classMirror)
		pod := until[corev1.Pod](ctx, s, member, "app", phase(corev1.PodRunning))

		By("deleting the leaf Pod and the leaf claim as the member's admin")
		Expect(member.API.Delete(ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
		Expect(member.API.Delete(ctx, leaf)).To(Succeed())
		gone[corev1.PersistentVolumeClaim](ctx, s, member, "data")
		s.pushedNext(ctx)

		goOn()
		until[corev1.Pod](ctx, s, x.Host, "app", And(phase(corev1.PodFailed), HaveField("Status.Reason", v1alpha1.ReasonLeafVanished)))
		s.barrier(ctx, nodeOne)
		requests, err := member.Audit().Since(ctx, mark)
		Expect(err).NotTo(HaveOccurred())
		Expect(requests.By(harness.MemberUser).Where(func(r controlplane.Request) bool {
			return r.Verb == "create" && r.Resource == "pods" && r.Namespace == s.namespace && r.Name == "app"
		})).To(HaveLen(1))
	}, SpecTimeout(storyTime))
})

// pushedNext is a barrier while the host's PV controller is stopped: when a new claim has its leaf
// claim, root_pvc has handled all earlier events.
func (s *story) pushedNext(ctx SpecContext) {
	GinkgoHelper()
	const name = "next"
	s.claim(ctx, name)
	s.pod(ctx, name, using(name), on(nodeOne))
	until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), name, Not(BeNil()))
}

// mirrorsOf returns the names of the host PVs for one of the story's claims.
func (s *story) mirrorsOf(ctx SpecContext, claim string) []string {
	GinkgoHelper()
	var list corev1.PersistentVolumeList
	Expect(x.Host.API.List(ctx, &list)).To(Succeed())
	var names []string
	for i := range list.Items {
		if ref := list.Items[i].Spec.ClaimRef; ref != nil && ref.Namespace == s.namespace && ref.Name == claim {
			names = append(names, list.Items[i].Name)
		}
	}
	return names
}
