package move_test

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/kubelet"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// patchVolume changes a PersistentVolume, as an admin of its cluster would.
func patchVolume(ctx SpecContext, c *harness.Cluster, name, patch string) {
	GinkgoHelper()
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	Expect(c.API.Patch(ctx, pv, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}

// free lets an admin retain a claim's volume, delete the claim, and offer the volume to any claim.
func free(ctx SpecContext, c *harness.Cluster, claim *corev1.PersistentVolumeClaim) (volume string) {
	GinkgoHelper()
	volume = suite.Until[corev1.PersistentVolumeClaim](ctx, c, claim.Namespace, claim.Name, HaveField("Status.Phase", corev1.ClaimBound)).Spec.VolumeName
	patchVolume(ctx, c, volume, `{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`)
	Expect(c.API.Delete(ctx, claim)).To(Succeed())
	suite.Until[corev1.PersistentVolume](ctx, c, "", volume, HaveField("Status.Phase", corev1.VolumeReleased))
	patchVolume(ctx, c, volume, `{"spec":{"claimRef":null}}`)
	suite.Until[corev1.PersistentVolume](ctx, c, "", volume, HaveField("Status.Phase", corev1.VolumeAvailable))
	return volume
}

var _ = Describe("A move into a member with an Available volume of the class", func() {
	It("does not use a volume that the host's admin freed", func(ctx SpecContext) {
		s := begin(ctx)
		fill(s.disk(ctx, s.volume))
		files := look(ctx, s.disk(ctx, s.volume))
		archive := harness.Claim(s.namespace, "archive", class)
		Expect(x.Host.Create(ctx, archive)).To(Succeed())
		s.pod(ctx, "writer", "archive", nodeTwo)
		s.running(ctx, "writer")
		s.deletePod(ctx, "writer")
		freed := free(ctx, x.Host, archive)
		precious := filepath.Join(s.disk(ctx, freed), "precious")
		Expect(os.WriteFile(precious, []byte("the only copy"), 0o600)).To(Succeed())

		r := s.move(ctx, "--to", two)
		Expect(r.code).To(BeZero(), r.err)
		s.moved(ctx, files)
		Expect(s.claim(ctx).Spec.VolumeName).NotTo(Equal(freed))
		Expect(os.ReadFile(precious)).To(BeEquivalentTo("the only copy"))
		suite.Until[corev1.PersistentVolume](ctx, x.Host, "", freed, HaveField("Status.Phase", corev1.VolumeAvailable))
		patchVolume(ctx, x.Host, freed, `{"spec":{"claimRef":{"namespace":"`+s.namespace+`","name":"nobody","uid":"nobody"}}}`) // hide it from other stories
	}, SpecTimeout(storyTime))

	It("ends before it writes to a volume of the member's admin, and its undo keeps that volume", func(ctx SpecContext) {
		s := begin(ctx)
		fill(s.disk(ctx, s.volume))
		files := look(ctx, s.disk(ctx, s.volume))
		m, own := x.Member(two), "own-"+s.namespace
		Expect(m.CreateNamespace(ctx, own)).To(Succeed())
		claim := harness.Claim(own, "own", controlplane.ClassHostpath)
		Expect(m.API.Create(ctx, claim)).To(Succeed())
		Expect(m.API.Create(ctx, harness.Pod(own, "writer", "own"))).To(Succeed())
		suite.Until[corev1.PersistentVolumeClaim](ctx, m, own, "own", HaveField("Status.Phase", corev1.ClaimBound))
		Expect(m.API.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "writer"}}, client.GracePeriodSeconds(0))).To(Succeed())
		freed := free(ctx, m, claim)
		patchVolume(ctx, m, freed, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
		leaf, err := suite.Read[corev1.PersistentVolume](ctx, m, "", freed)
		Expect(err).NotTo(HaveOccurred())
		disk, err := kubelet.DiskOfVolume(m.Cluster, leaf)
		Expect(err).NotTo(HaveOccurred())
		precious := filepath.Join(disk, "precious")
		Expect(os.WriteFile(precious, []byte("the only copy"), 0o600)).To(Succeed())

		for range 2 {
			r := s.move(ctx, "--to", two)
			Expect(r.code).NotTo(BeZero())
			Expect(r.err).To(And(ContainSubstring("volume %q, which was not provisioned for that claim", freed), ContainSubstring("--undo")))
			Expect(os.ReadFile(precious)).To(BeEquivalentTo("the only copy"))
		}
		r := s.move(ctx, "--undo")
		Expect(r.code).To(BeZero(), r.err)
		Expect(r.out).To(ContainSubstring("is kept with policy Retain"))
		suite.Until[corev1.PersistentVolume](ctx, x.Host, "", freed, And(
			HaveField("Status.Phase", corev1.VolumeReleased), HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimRetain)))
		suite.Until[corev1.PersistentVolume](ctx, m, "", freed, HaveField("Status.Phase", corev1.VolumeReleased))
		Expect(s.move(ctx, "--delete-source").code).NotTo(BeZero(), "no command destroys the volume")
		Expect(os.ReadFile(precious)).To(BeEquivalentTo("the only copy"))
		Expect(s.claim(ctx).Spec.VolumeName).To(Equal(s.volume))
		Expect(look(ctx, s.disk(ctx, s.volume))).To(Equal(files))
		s.only(ctx)
	}, SpecTimeout(storyTime))
})
