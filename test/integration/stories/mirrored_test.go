package stories_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/csidriver"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
)

var _ = Describe("A leaf claim that is deleted before the host has bound its volume's mirror", func() {
	It("is created again for that volume: no second one is made or mirrored (I1, I3)", func(ctx SpecContext) {
		s := begin(ctx)
		member := x.Member(one)
		By("the member's driver being slow")
		Expect(member.SetFaults(csidriver.Fault{Method: ledger.CreateVolume, Claim: s.namespace + "/data", Stall: true})).To(Succeed())
		DeferCleanup(func() error { return member.SetFaults() })
		s.claim(ctx, "data", ofClass(classMapped)) // Immediate in the member: no leaf Pod holds the leaf claim
		s.pod(ctx, "app", using("data"), on(nodeOne))
		leaf := until[corev1.PersistentVolumeClaim](ctx, s, member, "data", Not(BeNil()))

		By("the host's PV controller standing still while the disk is made and mirrored")
		binder := x.Fleet.Host.Process(controlplane.ControllerManager)
		Expect(binder.Freeze()).To(Succeed())
		DeferCleanup(binder.Thaw)
		Expect(member.SetFaults()).To(Succeed())
		volume := "pvc-" + string(leaf.UID)
		mirror := until[corev1.PersistentVolume](ctx, s, x.Host, volume, HaveField("Spec.ClaimRef.Name", "data"))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", phase(corev1.ClaimPending))

		By("the member's admin deleting the leaf claim, whose volume is kept")
		Expect(member.API.Delete(ctx, leaf)).To(Succeed())
		gone[corev1.PersistentVolumeClaim](ctx, s, member, "data")
		until[corev1.PersistentVolume](ctx, s, member, volume, phase(corev1.VolumeReleased))
		s.pushedNext(ctx)
		_, err := read[corev1.PersistentVolumeClaim](ctx, s, member, "data")
		Expect(err).To(MatchError(ContainSubstring("not found")), "another leaf claim would get another disk")

		By("the PV controller going on: the claim is bound to the first volume, and its Pod runs on it")
		Expect(binder.Thaw()).To(Succeed())
		s.running(ctx, "app", nodeOne)
		Expect(s.bound(ctx, "data").Spec.VolumeName).To(Equal(volume))
		until[corev1.PersistentVolume](ctx, s, x.Host, volume, And(phase(corev1.VolumeBound), HaveField("UID", mirror.UID)))
		again := until[corev1.PersistentVolumeClaim](ctx, s, member, "data", And(phase(corev1.ClaimBound), HaveField("Spec.VolumeName", volume)))
		Expect(again.UID).NotTo(Equal(leaf.UID))
		Expect(s.book(one, "data").Count(ledger.CreateVolume)).To(Equal(1))
		Expect(s.mirrorsOf(ctx, "data")).To(ConsistOf(volume))
	}, SpecTimeout(storyTime))
})

// pushedNext is the barrier where the host binds nothing: a claim that is created now has its
// leaf claim, so that root_pvc has seen what was there before.
func (s *story) pushedNext(ctx SpecContext) {
	GinkgoHelper()
	const name = "next"
	s.claim(ctx, name)
	s.pod(ctx, name, using(name), on(nodeOne))
	until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), name, Not(BeNil()))
}

// mirrorsOf are the host PVs that are for a claim of the story.
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
