package recovery_test

import (
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/integration/harness"
)

func uninstallWalk() {
	It("uninstalls Xylem in the documented order, and both clusters keep the retained data (I1, I2)", func(ctx SpecContext) {
		s := begin(ctx)
		s.use(ctx, "drained", nodeOne)
		volume := s.use(ctx, "kept", nodeTwo)

		By("1. deregistering a member with policy Drain")
		drained := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: one}}
		Expect(x.Host.API.Patch(ctx, drained, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"deregistration":"Drain"}}`)))).To(Succeed())
		annotate(ctx, drained, v1alpha1.AnnotationConfirmDeregister, one)
		Expect(x.Host.API.Delete(ctx, drained)).To(Succeed())
		registration(ctx, one, HaveField("Status.Conditions", ContainElement(And(
			HaveField("Type", v1alpha1.ConditionReady), HaveField("Reason", v1alpha1.ReasonDraining)))))
		drain(ctx, x.Host, x.Member(one))
		gone[v1alpha1.ClusterRegistration](ctx, s, x.Host, one)
		Expect(s.disks(one, "drained")).To(BeEmpty())

		By("2. deregistering the other member with policy Retain")
		Expect(x.Deregister(ctx, two)).To(Succeed())
		gone[corev1.Node](ctx, s, x.Host, nodeTwo)

		By("3. removing the manager and its objects, and finally the CRD")
		Expect(x.Manager.Stop()).To(Succeed())
		_, err := x.Kubectl(ctx, x.Fleet.Host, "delete", "--ignore-not-found", "-k", filepath.Join(x.Fleet.Dir(), "overlay"))
		Expect(err).NotTo(HaveOccurred())
		gone[corev1.Namespace](ctx, s, x.Host, v1alpha1.DefaultNamespace)
		until[corev1.PersistentVolume](ctx, s, x.Host, volume, And(phase(corev1.VolumeBound),
			HaveField("Annotations", HaveKeyWithValue(v1alpha1.AnnotationClusterGone, two)),
			HaveField("Finalizers", Not(ContainElement(v1alpha1.FinalizerLeafVolume)))))
		s.bound(ctx, "kept")

		By("4. removing Xylem's objects from the members")
		for _, member := range []string{one, two} {
			_, err = x.Kubectl(ctx, x.Fleet.Member(member), "delete", "--ignore-not-found", "-k", x.Root("config", "member"))
			Expect(err).NotTo(HaveOccurred())
			gone[corev1.Namespace](ctx, s, x.Member(member), v1alpha1.DefaultNamespace)
		}
		until[corev1.PersistentVolumeClaim](ctx, s, x.Member(two), "kept", phase(corev1.ClaimBound))
		until[corev1.PersistentVolume](ctx, s, x.Member(two), volume, And(phase(corev1.VolumeBound),
			HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimRetain)))
		Expect(s.disks(two, "kept")).To(HaveLen(1))
		Expect(s.destroyed(two)).To(BeZero())

		By("checking that none of Xylem's finalizers blocks the deletion of the remaining objects in the host")
		s.remove(ctx, "kept")
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Host, "kept")
		Expect(x.Host.API.Delete(ctx, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}})).To(Succeed())
		gone[corev1.PersistentVolume](ctx, s, x.Host, volume)
	}, SpecTimeout(storyTime))
}

// drain deletes the objects for which Drain waits: the claims that are placed in a member, and
// their released volumes with policy Retain. The member keeps the data of those volumes.
func drain(ctx SpecContext, host, member *harness.Cluster) {
	GinkgoHelper()
	id, err := member.ID(ctx)
	Expect(err).NotTo(HaveOccurred())
	var claims corev1.PersistentVolumeClaimList
	Expect(host.API.List(ctx, &claims)).To(Succeed())
	for i := range claims.Items {
		if claims.Items[i].Annotations[v1alpha1.AnnotationPlacedIn] == id {
			Expect(client.IgnoreNotFound(host.API.Delete(ctx, &claims.Items[i]))).To(Succeed())
		}
	}
	Eventually(ctx, func(g Gomega) {
		var volumes corev1.PersistentVolumeList
		g.Expect(host.API.List(ctx, &volumes, client.MatchingLabels{v1alpha1.LabelClusterID: id})).To(Succeed())
		for i := range volumes.Items {
			pv := &volumes.Items[i]
			if pv.Status.Phase == corev1.VolumeReleased && pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
				g.Expect(client.IgnoreNotFound(host.API.Delete(ctx, pv))).To(Succeed())
			}
		}
		g.Expect(volumes.Items).To(BeEmpty())
	}).WithContext(ctx).Should(Succeed())
}
