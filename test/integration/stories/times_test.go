package stories_test

import (
	"flag"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/manager"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// shippedTimes returns the defaults of the flags for which the stories' manager has shorter times.
func shippedTimes() (args []string) {
	GinkgoHelper()
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	new(manager.Options).AddFlags(flags)
	for _, name := range []string{"fence-duration", "probe-interval", "node-grace", "recheck-interval", "stuck-after", "silent-after"} {
		f := flags.Lookup(name)
		Expect(f).NotTo(BeNil(), name)
		args = append(args, "--"+name+"="+f.DefValue)
	}
	return args
}

var _ = Describe("The shipped times", suite.Slow, func() {
	It("end: for a silent provisioner, a stuck deletion, a webhook that hangs, a taken name, and a member that is away", func(ctx SpecContext) {
		prevented(ctx)
		s := begin(ctx)
		Expect(x.Manager.Stop()).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(x.Manager.Start(ctx)).To(Succeed())
			Expect(x.AwaitReady(ctx, one)).To(Succeed())
			Expect(x.AwaitReady(ctx, two)).To(Succeed())
		}, NodeTimeout(2*settle))
		shipped, err := x.AnotherManager(ctx, "shipped", x.Fleet.Host, shippedTimes()...)
		Expect(err).NotTo(HaveOccurred())
		Expect(shipped.Start(ctx)).To(Succeed())
		DeferCleanup(func() { Expect(shipped.Stop()).To(Succeed()) })

		By("beginning what takes longest: deleting a claim that a Pod uses, and stopping a provisioner")
		s.claim(ctx, "kept")
		s.pod(ctx, "user", using("kept"), on(nodeTwo))
		s.running(ctx, "user", nodeTwo)
		s.deleteClaim(ctx, "kept")
		provisioner := stoppedProvisioner(ctx)
		s.claim(ctx, "silent")
		s.pod(ctx, "silent", using("silent"), on(nodeOne))

		By("letting a webhook hang")
		hook := s.guards(ctx, x.Member(two), harness.MemberUser, registrationv1.Create, "pods")
		hook.hangs.Store(true)
		s.pod(ctx, "hangs", on(nodeTwo))
		s.noted(ctx, "Pod", "hangs", v1alpha1.ReasonRefusedByMember, two, "does not respond", "create Pod")
		hook.allows.Store(true)
		s.running(ctx, "hangs", nodeTwo)

		By("taking the name of a CSINode")
		patch(ctx, x.Host, csiNode(nodeTwo), `{"metadata":{"labels":null},"spec":{"drivers":[]}}`)
		until[corev1.Node](ctx, s, x.Host, nodeTwo, nodeReports(v1alpha1.ReasonCSINodeNameTaken))
		Expect(x.Host.API.Delete(ctx, csiNode(nodeTwo))).To(Succeed())
		until[storagev1.CSINode](ctx, s, x.Host, nodeTwo, namesDrivers("csi.xylem.io", "mock.csi.virtual-kubelet.io"))

		By("disconnecting a member, and connecting it again")
		back := cutOff(ctx, two, controlplane.Cut)
		registration(ctx, two, says(v1alpha1.ConditionNodeReady, metav1.ConditionFalse, v1alpha1.ReasonMemberAway))
		back()
		Expect(x.AwaitReady(ctx, two)).To(Succeed())

		By("waiting for the reports of what takes longest")
		s.noted(ctx, "PersistentVolumeClaim", "kept", v1alpha1.ReasonStuckDeletion, "Pod "+s.namespace+"/user")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "silent", tells(v1alpha1.ReasonProvisionerSilent, one, "provisioner"))
		Expect(provisioner.Start(ctx)).To(Succeed())
		s.running(ctx, "silent", nodeOne)
	}, SpecTimeout(3*storyTime))
})
