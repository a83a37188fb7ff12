package stories_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/integration/suite"
)

var _ = Describe("A disconnected member", func() {
	DescribeTable("does not delay other members, and Xylem catches up when it is connected again (I1, I7)", func(ctx SpecContext, mode controlplane.ProxyMode, notReady bool) {
		s := begin(ctx)
		proxy := x.Fleet.Member(two).Proxy()
		volumes := map[string]string{}
		for _, name := range []string{"unused", "used"} {
			s.claim(ctx, name)
			s.pod(ctx, name, using(name), on(nodeTwo))
			s.running(ctx, name, nodeTwo)
			volumes[name] = s.bound(ctx, name).Spec.VolumeName
		}
		s.deletePod(ctx, "unused")
		gone[corev1.Pod](ctx, s, x.Host, "unused")

		Expect(proxy.SetMode(mode)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(proxy.SetMode(controlplane.Pass)).To(Succeed())
			Expect(x.AwaitReady(ctx, two)).To(Succeed())
		}, NodeTimeout(settle))
		registration(ctx, two, says(v1alpha1.ConditionConnected, metav1.ConditionFalse, v1alpha1.ReasonUnreachable))

		By("deleting objects and creating new ones")
		s.deleteClaim(ctx, "unused")
		s.deletePod(ctx, "used")
		s.deleteClaim(ctx, "used")
		s.claim(ctx, "new")
		s.pod(ctx, "new", using("new"), on(nodeTwo))

		By("checking that the other member continues")
		s.barrier(ctx, nodeOne)
		if notReady {
			until[corev1.Node](ctx, s, x.Host, nodeTwo, HaveField("Status.Conditions", ContainElement(And(
				HaveField("Type", v1alpha1.NodeMemberAway), HaveField("Status", corev1.ConditionTrue)))))
			s.barrier(ctx, nodeOne)
		}
		for name, volume := range volumes {
			Expect(s.book(two, name).LiveIDs()).To(HaveLen(1))
			until[corev1.PersistentVolume](ctx, s, x.Host, volume, HaveField("Finalizers", ContainElement(v1alpha1.FinalizerLeafVolume)))
		}

		By("reconnecting the member")
		Expect(proxy.SetMode(controlplane.Pass)).To(Succeed())
		for name, volume := range volumes {
			s.destroyed(ctx, two, name, volume)
			gone[corev1.Pod](ctx, s, x.Host, name)
			gone[corev1.Pod](ctx, s, x.Member(two), name)
		}
		s.running(ctx, "new", nodeTwo)
		Expect(s.book(two, "new").Count(ledger.CreateVolume)).To(Equal(1))
	},
		Entry("its connections are refused until its node reports that it is away", suite.Slow, SpecTimeout(storyTime), controlplane.Cut, true),
		Entry("its connections hang", suite.Slow, suite.Core, SpecTimeout(storyTime), controlplane.Blackhole, false),
	)
})

var _ = Describe("A manager that is killed", Ordered, func() {
	// frozen freezes member one's provisioner until the story ends.
	frozen := func() *controlplane.Process {
		GinkgoHelper()
		p := x.Fleet.Member(one).Process(controlplane.Provisioner)
		Expect(p.Freeze()).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(p.Thaw()).To(Succeed())
			Expect(x.Manager.Start(ctx)).To(Succeed())
		}, NodeTimeout(settle))
		return p
	}
	restart := func(ctx context.Context) {
		GinkgoHelper()
		Expect(x.Manager.Start(ctx)).To(Succeed())
		Expect(x.AwaitReady(ctx, one)).To(Succeed())
	}

	It("while a disk is being provisioned finds the disk after a restart (I6)", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		provisioner := frozen()
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		until[corev1.Pod](ctx, s, x.Member(one), "app", Not(BeNil()))
		Expect(x.Manager.Kill()).To(Succeed())
		Expect(provisioner.Thaw()).To(Succeed())
		until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data", phase(corev1.ClaimBound))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", phase(corev1.ClaimPending))
		restart(ctx)
		s.running(ctx, "app", nodeOne)
		Expect(s.book(one, "data").Count(ledger.CreateVolume)).To(Equal(1))
	}, SpecTimeout(storyTime))

	It("deletes a disk that was provisioned before the restart for a claim that no longer exists (I1, I6)", suite.Slow, suite.Core, func(ctx SpecContext) {
		s := begin(ctx)
		provisioner := frozen()
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		until[corev1.Pod](ctx, s, x.Member(one), "app", Not(BeNil()))
		Expect(x.Manager.Kill()).To(Succeed())
		Expect(provisioner.Thaw()).To(Succeed())
		volume := until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data", phase(corev1.ClaimBound)).Spec.VolumeName
		s.deletePod(ctx, "app")
		s.deleteClaim(ctx, "data")
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data")
		Expect(s.book(one, "data").LiveIDs()).To(HaveLen(1))
		restart(ctx)
		gone[corev1.Pod](ctx, s, x.Member(one), "app")
		s.destroyed(ctx, one, "data", volume)
	}, SpecTimeout(storyTime))

	It("during a deletion completes the deletion after a restart (I1, I6)", suite.Slow, suite.Core, func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.running(ctx, "app", nodeOne)
		volume := s.bound(ctx, "data").Spec.VolumeName
		provisioner := frozen()
		s.deletePod(ctx, "app")
		s.deleteClaim(ctx, "data")
		until[corev1.PersistentVolume](ctx, s, x.Member(one), volume, HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimDelete))
		Expect(x.Manager.Kill()).To(Succeed())
		Expect(provisioner.Thaw()).To(Succeed())
		until[corev1.PersistentVolume](ctx, s, x.Host, volume, HaveField("Finalizers", ContainElement(v1alpha1.FinalizerLeafVolume)))
		restart(ctx)
		s.destroyed(ctx, one, "data", volume)
	}, SpecTimeout(storyTime))
})

var _ = Describe("A volume of an unreachable member", func() {
	It("can be abandoned by an admin, and its data is kept (I1, I2)", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeTwo))
		s.running(ctx, "app", nodeTwo)
		volume := s.bound(ctx, "data").Spec.VolumeName
		s.deletePod(ctx, "app")
		gone[corev1.Pod](ctx, s, x.Host, "app")

		back := cutOff(ctx, two, controlplane.Blackhole)
		s.deleteClaim(ctx, "data")
		host := until[corev1.PersistentVolume](ctx, s, x.Host, volume, phase(corev1.VolumeReleased))

		By("abandoning the volume")
		patch(ctx, x.Host, host, `{"metadata":{"annotations":{"`+v1alpha1.AnnotationAbandon+`":"true"}}}`)
		gone[corev1.PersistentVolume](ctx, s, x.Host, volume)
		s.noted(ctx, "PersistentVolume", volume, "Abandoned", v1alpha1.AnnotationAbandon)
		s.recorded(ctx, idOf(ctx, x.Member(two)), v1alpha1.AnnotationAbandon, volume)

		By("reconnecting the member: its volume is kept for the member's admin")
		back()
		Expect(x.AwaitReady(ctx, two)).To(Succeed())
		registration(ctx, two, HaveField("Status.Volumes.Orphaned", BeNumerically(">=", 1)))
		s.barrier(ctx, nodeTwo)
		leaf := until[corev1.PersistentVolume](ctx, s, x.Member(two), volume, HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimRetain))
		Expect(s.book(two, "data").LiveIDs()).To(HaveLen(1))
		patch(ctx, x.Member(two), leaf, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
		gone[corev1.PersistentVolume](ctx, s, x.Member(two), volume)
	}, SpecTimeout(storyTime))
})
