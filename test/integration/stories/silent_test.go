package stories_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/suite"
)

var _ = Describe("A claim whose provisioner does not respond", func() {
	const absent = "absent.example.com"

	It("reports the provisioner, also on the Pod, does not move, and is provisioned once the provisioner runs (I3)", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		class := s.impatient(ctx)
		provisioner := stoppedProvisioner(ctx)
		s.claim(ctx, "data", ofClass(class))
		s.pod(ctx, "app", using("data"), preferring(nodeOne))
		told := tells(v1alpha1.ReasonProvisionerSilent, one, "provisioner", controlplane.DefaultDriverName, class)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", told)
		until[corev1.Pod](ctx, s, x.Host, "app", tells(v1alpha1.ReasonProvisionerSilent, "data", "provisioner"))
		s.why(ctx, "pod", "app", v1alpha1.ReasonProvisionerSilent, "provisioner")

		Expect(provisioner.Start(ctx)).To(Succeed())
		s.running(ctx, "app", nodeOne)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", suite.Unreported())
		Expect(s.book(one, "data").LiveIDs()).To(HaveLen(1))
		Expect(s.book(two, "data").LiveIDs()).To(BeEmpty())
	}, SpecTimeout(storyTime))

	It("reports a driver whose calls are always too slow, does not move, and is provisioned once a call succeeds (I3)", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		class := s.impatient(ctx)
		s.faulty(one, codes.Unavailable, "the array restarts", "data")
		s.claim(ctx, "data", ofClass(class))
		s.pod(ctx, "app", using("data"), preferring(nodeOne))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", tells(v1alpha1.ReasonProvisioningSlow, one, "the array restarts"))
		until[corev1.Pod](ctx, s, x.Host, "app", tells(v1alpha1.ReasonProvisioningSlow, "data", "the array restarts"))
		s.why(ctx, "pod", "app", v1alpha1.ReasonProvisioningSlow, "the array restarts")

		s.repaired(one)
		s.running(ctx, "app", nodeOne)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", suite.Unreported())
		Expect(s.book(two, "data").LiveIDs()).To(BeEmpty())
	}, SpecTimeout(storyTime))

	DescribeTable("reports a program of Kubernetes that does not run in the member, and is provisioned once it runs",
		func(ctx SpecContext, program controlplane.ProcessName, reason, says string) {
			s := begin(ctx)
			s.claim(ctx, "first")
			s.pod(ctx, "first", using("first"), on(nodeOne))
			s.running(ctx, "first", nodeOne)
			process := stopped(ctx, one, program)
			s.claim(ctx, "data")
			s.pod(ctx, "app", using("data"), on(nodeOne))
			until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", tells(reason, one, says))
			s.why(ctx, "pod", "app", reason, says)

			Expect(process.Start(ctx)).To(Succeed())
			s.running(ctx, "app", nodeOne)
			until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", suite.Unreported())
		},
		Entry("the scheduler", suite.Slow, SpecTimeout(storyTime), controlplane.Scheduler, v1alpha1.ReasonSchedulerSilent, "this scheduler runs"),
		Entry("the controller manager", suite.Slow, SpecTimeout(storyTime), controlplane.ControllerManager, v1alpha1.ReasonControllerManagerSilent, "kube-controller-manager"),
	)

	It("reports a provisioner that is not installed", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		class := controlplane.Class(s.namespace, storagev1.VolumeBindingWaitForFirstConsumer, corev1.PersistentVolumeReclaimDelete)
		class.Provisioner = absent
		inMember(ctx, x.Member(one), &class)
		inMember(ctx, x.Host, hostClass(s.namespace, s.namespace))
		s.claim(ctx, "data", ofClass(s.namespace))
		s.pod(ctx, "app", using("data"), on(nodeOne))
		stays := until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", tells(v1alpha1.ReasonProvisionerSilent, one, absent, s.namespace))
		Expect(stays.Annotations).To(HaveKeyWithValue(route.AnnSelectedNode, nodeOne))
	}, SpecTimeout(storyTime))
})
