package snapshots_test

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/csidriver"
)

// stopped stops a program of member one until the story starts it, or ends.
func stopped(ctx context.Context, name controlplane.ProcessName) *controlplane.Process {
	GinkgoHelper()
	program := x.Fleet.Member(one).Process(name)
	Expect(program.Stop(ctx)).To(Succeed())
	DeferCleanup(program.Start, NodeTimeout(settle)) // reports an error as a failure
	return program
}

var _ = Describe("A snapshot whose member does not respond to it", func() {
	It("reports the snapshot-controller, then the csi-snapshotter, also on a claim that is restored from it, and is taken once both run (I6)", func(ctx SpecContext) {
		s := begin(ctx)
		s.data(ctx, "data", nodeOne)
		controller, snapshotter := stopped(ctx, controlplane.SnapshotController), stopped(ctx, controlplane.Snapshotter)
		vs := s.take(ctx, "snap", "data", deletes)
		s.refused(ctx, "snap", v1alpha1.ReasonSnapshotterSilent, "the snapshot-controller of member", one, s.namespace+"/snap", "installed and running")
		s.restore(ctx, "copy", "snap")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", waits(v1alpha1.ReasonSourceNotReady, "is not ready to use", "the snapshot-controller of member"))

		By("restarting the manager, which reports another snapshot, but does not repeat its report")
		reported := until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(vs), fails("the snapshot-controller of member"))
		restart(ctx)
		s.take(ctx, "later", "data", deletes)
		s.refused(ctx, "later", v1alpha1.ReasonSnapshotterSilent, "the snapshot-controller of member")
		until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(vs), HaveField("ResourceVersion", reported.ResourceVersion))

		Expect(controller.Start(ctx)).To(Succeed())
		until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(vs), HaveField("Status.Error", BeNil()))
		_, content := s.leaf(ctx, one, "snap")
		s.refused(ctx, "snap", v1alpha1.ReasonSnapshotterSilent, "the csi-snapshotter of driver", controlplane.DefaultDriverName, one, content.Name)
		Expect(until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Member(one), content.Name, Not(BeNil())).Annotations).NotTo(HaveKey(v1alpha1.AnnotationRoot),
			"the csi-snapshotter's first write must not conflict with the stamp")

		Expect(snapshotter.Start(ctx)).To(Succeed())
		for _, name := range []string{"snap", "later"} {
			until[snapshotv1.VolumeSnapshot](ctx, s, x.Host, name, And(isReady(true), HaveField("Status.Error", BeNil())))
		}
		Expect(s.taken(one, "data")).To(HaveLen(2))
		s.uses(ctx, "app", nodeOne, "copy")
		s.running(ctx, "app", nodeOne)
	}, SpecTimeout(storyTime))

	It("is not reported while the driver uploads it", func(ctx SpecContext) {
		s := begin(ctx)
		s.data(ctx, "data", nodeOne)
		s.data(ctx, "other", nodeOne)
		member := x.Fleet.Member(one)
		Expect(member.SetFaults(csidriver.Fault{Method: csidriver.MethodUpload, Claim: s.namespace + "/data"})).To(Succeed())
		DeferCleanup(func() { Expect(member.SetFaults()).To(Succeed()) })
		slow := s.take(ctx, "slow", "data", deletes)
		until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(slow), isReady(false))

		By("waiting for the report of a snapshot that was taken later")
		controller := stopped(ctx, controlplane.SnapshotController)
		s.take(ctx, "later", "other", deletes)
		s.refused(ctx, "later", v1alpha1.ReasonSnapshotterSilent, one)
		// The csi-snapshotter's own errors remain until the upload has ended (external-snapshotter 8.6).
		until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(slow), And(isReady(false), Not(fails("has not responded"))))

		Expect(controller.Start(ctx)).To(Succeed())
		Expect(member.SetFaults()).To(Succeed())
		for _, name := range []string{"slow", "later"} {
			until[snapshotv1.VolumeSnapshot](ctx, s, x.Host, name, And(isReady(true), HaveField("Status.Error", BeNil())))
		}
	}, SpecTimeout(storyTime))
})
