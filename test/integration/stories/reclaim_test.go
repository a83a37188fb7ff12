package stories_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/integration/suite"
)

var _ = Describe("The deletion of a claim", func() {
	It("destroys the disk if the policy is Delete, but not while a Pod uses it (I1, I2)", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.running(ctx, "app", nodeOne)
		volume := s.bound(ctx, "data").Spec.VolumeName

		By("checking that the claim exists for as long as the Pod uses it")
		s.deleteClaim(ctx, "data")
		s.barrier(ctx, nodeOne)
		Expect(s.book(one, "data").LiveIDs()).To(HaveLen(1))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data", HaveField("DeletionTimestamp", BeNil()))

		s.deletePod(ctx, "app")
		s.destroyed(ctx, one, "data", volume)
		gone[corev1.Pod](ctx, s, x.Host, "app")
		gone[corev1.Pod](ctx, s, x.Member(one), "app")
		Expect(s.book(one, "data").Count(ledger.DeleteVolume)).To(Equal(1))
	}, SpecTimeout(storyTime))

	DescribeTable("keeps the disk for another claim if either policy is Retain (I2, I3)", func(ctx SpecContext, class, next string) {
		s := begin(ctx)
		s.claim(ctx, "data", ofClass(class))
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.running(ctx, "app", nodeOne)
		volume := s.bound(ctx, "data").Spec.VolumeName
		until[corev1.PersistentVolume](ctx, s, x.Host, volume, HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimRetain))

		s.deletePod(ctx, "app")
		s.deleteClaim(ctx, "data")
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data")
		host := until[corev1.PersistentVolume](ctx, s, x.Host, volume, phase(corev1.VolumeReleased))
		until[corev1.PersistentVolume](ctx, s, x.Member(one), volume, phase(corev1.VolumeReleased))
		disks := s.book(one, "data").LiveIDs()
		Expect(disks).To(HaveLen(1))

		By("clearing the claimRef as an admin, and using the volume again")
		patch(ctx, x.Host, host, `{"spec":{"claimRef":null}}`)
		until[corev1.PersistentVolume](ctx, s, x.Host, volume, phase(corev1.VolumeAvailable))
		// The barrier shows that the scheduler has observed this volume. Otherwise, the scheduler
		// might request a new volume, as it might in a single cluster.
		s.barrier(ctx, nodeOne)
		claim := s.claim(ctx, next, ofClass(class), func(c *corev1.PersistentVolumeClaim) {
			if next != "any" {
				c.Spec.VolumeName = volume
			}
		})
		where := []func(*corev1.Pod){using(next)}
		if next == "any" {
			// On other nodes, the scheduler could request a new volume.
			where = append(where, on(nodeOne))
		}
		s.pod(ctx, "again", where...)
		s.running(ctx, "again", nodeOne)
		s.bound(ctx, next)

		leaf := until[corev1.PersistentVolume](ctx, s, x.Member(one), volume, phase(corev1.VolumeBound))
		Expect(leaf.Spec.ClaimRef.Name).To(Equal(next))
		Expect(leaf.Spec.PersistentVolumeReclaimPolicy).To(Equal(corev1.PersistentVolumeReclaimRetain))
		leafClaim := until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), next, phase(corev1.ClaimBound))
		Expect(leafClaim.Spec.VolumeName).To(Equal(volume))
		until[corev1.PersistentVolume](ctx, s, x.Host, volume, HaveField("Spec.ClaimRef.UID", claim.UID))

		By("checking that no other disk was provisioned")
		Expect(s.book(one, "data").LiveIDs()).To(Equal(disks))
		Expect(s.book(one, "data").Count(ledger.CreateVolume)).To(Equal(1))
		if next != "data" {
			Expect(s.book(one, next).Calls(ledger.CreateVolume)).To(BeZero())
		}
	},
		Entry("policy Retain in the host, and a claim with the same name", suite.Slow, SpecTimeout(storyTime), classRetainHost, "data"),
		Entry("policy Retain in the host, and a claim with another name", suite.Slow, SpecTimeout(storyTime), classRetainHost, "other"),
		Entry("policy Retain in the host, and a claim that does not name the volume", suite.Slow, SpecTimeout(storyTime), classRetainHost, "any"),
		Entry("policy Retain in the member, and a claim with the same name", SpecTimeout(storyTime), classRetained, "data"),
	)

	It("destroys no data if the policy is Recycle, and the policy is reported until an admin sets another one (I2)", func(ctx SpecContext) {
		s := begin(ctx)
		volume := s.data(ctx)
		host := until[corev1.PersistentVolume](ctx, s, x.Host, volume, phase(corev1.VolumeBound))
		patch(ctx, x.Host, host, `{"spec":{"persistentVolumeReclaimPolicy":"Recycle"}}`)
		s.deletePod(ctx, "app")
		s.deleteClaim(ctx, "data")
		until[corev1.PersistentVolume](ctx, s, x.Host, volume, phase(corev1.VolumeFailed))
		s.noted(ctx, "PersistentVolume", volume, v1alpha1.ReasonReclaimPolicyUnsupported, "Recycle")
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data")
		until[corev1.PersistentVolume](ctx, s, x.Member(one), volume, And(phase(corev1.VolumeReleased),
			HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimRetain)))
		Expect(s.book(one, "data").LiveIDs()).To(HaveLen(1))

		patch(ctx, x.Host, host, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
		s.destroyed(ctx, one, "data", volume)
	}, SpecTimeout(storyTime))

	It("keeps the data of a volume that an admin abandons (I2)", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data", ofClass(classRetainHost))
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.running(ctx, "app", nodeOne)
		volume := s.bound(ctx, "data").Spec.VolumeName
		s.deletePod(ctx, "app")
		s.deleteClaim(ctx, "data")
		host := until[corev1.PersistentVolume](ctx, s, x.Host, volume, phase(corev1.VolumeReleased))
		until[corev1.PersistentVolume](ctx, s, x.Member(one), volume, phase(corev1.VolumeReleased))

		By("deleting the retained host PV: this does not request the destruction of the leaf volume")
		Expect(x.Host.API.Delete(ctx, host)).To(Succeed())
		gone[corev1.PersistentVolume](ctx, s, x.Host, volume)
		s.barrier(ctx, nodeOne)
		until[corev1.PersistentVolume](ctx, s, x.Member(one), volume, HaveField("DeletionTimestamp", BeNil()))
		Expect(s.book(one, "data").LiveIDs()).To(HaveLen(1))
		registration(ctx, one, HaveField("Status.Volumes.Orphaned", BeNumerically(">=", 1)))

		By("destroying the leaf volume as the member's admin, who is allowed to do so")
		member := x.Member(one)
		leaf := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}}
		patch(ctx, member, leaf, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
		gone[corev1.PersistentVolume](ctx, s, member, volume)
		Eventually(ctx, func() []string { return s.book(one, "data").LiveIDs() }).Should(BeEmpty())
		registration(ctx, one, HaveField("Status.Volumes.Orphaned", BeZero()))
	}, SpecTimeout(storyTime))
})
