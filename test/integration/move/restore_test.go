package move_test

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/kubelet"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// restoreHost restores the host from a backup once the backup is older than an epoch.
func restoreHost(ctx context.Context, backup *controlplane.Snapshot) {
	GinkgoHelper()
	suite.Aging(ctx, x, one, two)()
	Expect(x.Manager.Stop()).To(Succeed())
	Expect(x.Fleet.Host.Restore(ctx, backup)).To(Succeed())
	Expect(x.Manager.Start(ctx)).To(Succeed())
	for _, member := range []string{one, two} {
		suite.Restored(ctx, x, member, v1alpha1.ReasonHostRestored)
	}
}

// confirmRestore confirms the restore for both members.
func confirmRestore(ctx context.Context) {
	GinkgoHelper()
	for _, member := range []string{one, two} {
		suite.ConfirmRestore(ctx, x, member, v1alpha1.ReasonHostRestored)
	}
}

// movedSince moves the claim, and writes newer data to its new disk, which a Pod uses. It returns
// the new volume, its disk, and a backup of the host from the n-th checksum of the old disk.
func (s *story) movedSince(ctx context.Context, n int) (volume, disk string, backup *controlplane.Snapshot) {
	GinkgoHelper()
	write(s.disk(ctx, s.volume), "text", "old")
	kubelets[one].Before(once(sums, n, func(kubelet.Command) (err error) {
		backup, err = x.Fleet.Host.Snapshot(ctx)
		return err
	}))
	r := s.move(ctx, "--to", two)
	Expect(r.code).To(BeZero(), r.err)
	volume = s.claim(ctx).Spec.VolumeName
	disk = s.disk(ctx, volume)
	s.pod(ctx, "app", "data", nodeTwo)
	s.running(ctx, "app")
	write(disk, "text", "new")
	return volume, disk, backup
}

var _ = Describe("A restore of the host to a state during a move", func() {
	DescribeTable("destroys nothing that Pods have written since", func(ctx SpecContext, n int) {
		s := begin(ctx)
		moved, disk, backup := s.movedSince(ctx, n)
		newer := func() {
			GinkgoHelper()
			Expect(os.ReadFile(filepath.Join(disk, "text"))).To(BeEquivalentTo("new"))
		}

		By("restoring the host, and running the command before anybody confirms the restore")
		restoreHost(ctx, backup)
		for _, args := range [][]string{{"--to", two}, {"--undo"}} {
			r := s.move(ctx, args...)
			Expect(r.code).NotTo(BeZero(), r.out)
			Expect(r.err).To(ContainSubstring("no admin has confirmed the restore"))
			newer()
		}
		confirmRestore(ctx)

		By("running the command again")
		r := s.move(ctx, "--to", two)
		Expect(r.code).NotTo(BeZero(), r.out)
		Expect(r.err).To(And(ContainSubstring("restored"), ContainSubstring("--undo")))
		newer()
		r = s.move(ctx, "--undo")
		Expect(r.code).To(BeZero(), r.err)
		newer()
		claim := s.claim(ctx)
		Expect(claim.Spec.VolumeName).To(Equal(s.volume))
		Expect(os.ReadFile(filepath.Join(s.disk(ctx, s.volume), "text"))).To(BeEquivalentTo("old"))

		By("finding the newer data in a volume that nobody destroys")
		suite.Until[corev1.PersistentVolume](ctx, x.Host, "", moved, And(
			HaveField("Status.Phase", corev1.VolumeReleased), HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimRetain)))
		newer()
	},
		Entry("after the copy", SpecTimeout(2*storyTime), 1),
		Entry("while the claim is being deleted", SpecTimeout(2*storyTime), 2),
	)

	It("does not destroy the disk that an undo has made current again, if the host lost the undo", func(ctx SpecContext) {
		s := begin(ctx)
		write(s.disk(ctx, s.volume), "text", "old")
		r := s.move(ctx, "--to", two)
		Expect(r.code).To(BeZero(), r.err)
		backup, err := x.Fleet.Host.Snapshot(ctx)
		Expect(err).NotTo(HaveOccurred())
		r = s.move(ctx, "--undo")
		Expect(r.code).To(BeZero(), r.err)
		s.pod(ctx, "app", "data", nodeOne)
		s.running(ctx, "app")
		disk := s.disk(ctx, s.volume)
		write(disk, "text", "new")

		restoreHost(ctx, backup)
		r = s.move(ctx, "--delete-source")
		Expect(r.code).NotTo(BeZero(), r.out)
		Expect(r.err).To(ContainSubstring("no admin has confirmed the restore"))
		confirmRestore(ctx)
		r = s.move(ctx, "--delete-source")
		Expect(r.code).NotTo(BeZero(), r.out)
		Expect(r.err).To(And(ContainSubstring("newest data"), ContainSubstring(s.volume)))
		suite.Until[corev1.PersistentVolume](ctx, x.Host, "", s.volume, HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimRetain))
		Expect(os.ReadFile(filepath.Join(disk, "text"))).To(BeEquivalentTo("new"))
	}, SpecTimeout(2*storyTime))

	It("retains the copy, because a claim that the host lost used it last (I2)", func(ctx SpecContext) {
		s := begin(ctx)
		moved, disk, backup := s.movedSince(ctx, 1)
		restoreHost(ctx, backup)
		confirmRestore(ctx)

		By("reporting the lost claim, and keeping the volume")
		pv := suite.Until[corev1.PersistentVolume](ctx, x.Host, "", moved, HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimRetain))
		Eventually(ctx, func(ctx context.Context) ([]eventsv1.Event, error) {
			var list eventsv1.EventList
			err := x.Host.API.List(ctx, &list)
			return list.Items, err
		}).WithContext(ctx).Should(ContainElement(And(
			HaveField("Regarding.Name", moved), HaveField("Reason", v1alpha1.ReasonLastClaimLost),
			HaveField("Note", ContainSubstring(`claim "`+s.namespace+`/data" may have used volume`)))))

		By("deleting the copy's claim after Xylem has stamped the leaf PV for it")
		suite.Until[corev1.PersistentVolume](ctx, x.Member(two), "", moved, HaveField("Annotations", HaveKeyWithValue(v1alpha1.AnnotationRootUID, string(pv.Spec.ClaimRef.UID))))
		Expect(x.Host.API.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(s.namespace), client.HasLabels{v1alpha1.LabelMove})).To(Succeed())
		Expect(x.Host.API.DeleteAllOf(ctx, &corev1.PersistentVolumeClaim{}, client.InNamespace(s.namespace), client.HasLabels{v1alpha1.LabelMove})).To(Succeed())
		suite.Until[corev1.PersistentVolume](ctx, x.Host, "", moved, HaveField("Status.Phase", corev1.VolumeReleased))
		Expect(os.ReadFile(filepath.Join(disk, "text"))).To(BeEquivalentTo("new"))

		By("using the volume again")
		Expect(x.Host.API.Patch(ctx, pv, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"claimRef":null}}`)))).To(Succeed())
		claim := harness.Claim(s.namespace, "rescued", class)
		claim.Spec.VolumeName = moved
		Expect(x.Host.Create(ctx, claim)).To(Succeed())
		s.pod(ctx, "reader", "rescued", nodeTwo)
		s.running(ctx, "reader")
		Expect(os.ReadFile(filepath.Join(s.disk(ctx, moved), "text"))).To(BeEquivalentTo("new"))
		s.deletePod(ctx, "reader")

		By("setting the policy to Delete again, and deleting the claim, which destroys the volume")
		Expect(x.Host.API.Patch(ctx, pv, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)))).To(Succeed())
		Expect(x.Host.API.Delete(ctx, claim)).To(Succeed())
		Eventually(func() bool { return exists(disk) }).Should(BeFalse())
	}, SpecTimeout(2*storyTime))
})
