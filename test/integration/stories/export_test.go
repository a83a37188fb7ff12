package stories_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// exported reads an object of the host as a backup tool does: without the fields that identify it.
func (s *story) exported(ctx context.Context, kind, name string) *unstructured.Unstructured {
	GinkgoHelper()
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	Expect(x.Host.API.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, obj)).To(Succeed())
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields"} {
		unstructured.RemoveNestedField(obj.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(obj.Object, "status")
	return obj
}

var _ = Describe("Exported objects", func() {
	It("can be replaced and created again, and their keys of Xylem have no effect (I2, I3, I8)", suite.Slow, func(ctx SpecContext) {
		suite.From(x.Host, "1.36", "it serves no MutatingAdmissionPolicies")
		s := begin(ctx)
		s.claim(ctx, "data", ofClass(classRetained))
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.running(ctx, "app", nodeOne)
		volume := s.bound(ctx, "data").Spec.VolumeName
		pod, claim, pv := s.exported(ctx, "Pod", "app"), s.exported(ctx, "PersistentVolumeClaim", "data"), s.exported(ctx, "PersistentVolume", volume)
		Expect(pod.GetAnnotations()).To(HaveKey(v1alpha1.AnnotationLeafUID))
		Expect(claim.GetAnnotations()).To(HaveKey(v1alpha1.AnnotationPlacedIn))
		Expect(pv.GetFinalizers()).To(ContainElement(v1alpha1.FinalizerLeafVolume))

		By("replacing the Pod and the claim with manifests that lack all keys of Xylem")
		for _, obj := range []*unstructured.Unstructured{pod, claim} {
			put := obj.DeepCopy()
			put.SetAnnotations(map[string]string{"example.com/note": "a"})
			Expect(x.Host.API.Update(ctx, put)).To(Succeed())
			Expect(ours(put.GetAnnotations())).To(Equal(ours(obj.GetAnnotations())))
		}

		By("replacing the Pod with its own manifest by force")
		file := filepath.Join(GinkgoT().TempDir(), "pod.json")
		content, err := json.Marshal(pod)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(file, content, 0o600)).To(Succeed())
		before := s.running(ctx, "app")
		_, err = x.Kubectl(ctx, x.Fleet.Host, "replace", "--force", "-f", file)
		Expect(err).NotTo(HaveOccurred())
		after := s.running(ctx, "app", nodeOne)
		Expect(after.UID).NotTo(Equal(before.UID))
		Expect(after.Annotations[v1alpha1.AnnotationLeafUID]).NotTo(Equal(before.Annotations[v1alpha1.AnnotationLeafUID]))

		By("deleting all of them, and creating the volume with policy Delete from an export of another host")
		s.deletePod(ctx, "app")
		s.deleteClaim(ctx, "data")
		released := until[corev1.PersistentVolume](ctx, s, x.Host, volume, phase(corev1.VolumeReleased))
		leaf := until[corev1.PersistentVolume](ctx, s, x.Member(one), volume, phase(corev1.VolumeReleased))
		Expect(x.Host.API.Delete(ctx, released)).To(Succeed())
		gone[corev1.PersistentVolume](ctx, s, x.Host, volume)
		pv.SetLabels(map[string]string{v1alpha1.LabelCluster: "another", v1alpha1.LabelClusterID: "another"})
		Expect(unstructured.SetNestedField(pv.Object, "Delete", "spec", "persistentVolumeReclaimPolicy")).To(Succeed())
		Expect(x.Host.API.Create(ctx, pv)).To(Succeed())
		DeferCleanup(deleted(x.Host, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}}), NodeTimeout(settle))
		until[corev1.PersistentVolume](ctx, s, x.Host, volume, And(phase(corev1.VolumeReleased), WithTransform(hostpv.IsImportedVolume, BeTrue()),
			HaveField("Labels", HaveKeyWithValue(v1alpha1.LabelCluster, one)), HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimRetain)))

		By("creating the claim and the Pod again, after the admin has released the volume for the claim")
		patch(ctx, x.Host, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}}, `{"spec":{"claimRef":null}}`)
		annotations := ours(claim.GetAnnotations())
		annotations[v1alpha1.AnnotationPlacedIn] = "another"
		claim.SetAnnotations(annotations)
		Expect(x.Host.API.Create(ctx, claim)).To(Succeed())
		Expect(ours(claim.GetAnnotations())).To(BeEmpty())
		unstructured.RemoveNestedField(pod.Object, "spec", "nodeName")
		Expect(x.Host.API.Create(ctx, pod)).To(Succeed())
		s.running(ctx, "app", nodeOne)
		Expect(s.bound(ctx, "data").Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationPlacedIn, idOf(ctx, x.Member(one))))
		Expect(until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data", phase(corev1.ClaimBound)).Spec.VolumeName).To(Equal(leaf.Name))
		Expect(s.book(one, "data").Calls(ledger.CreateVolume)).To(Equal(1))

		By("destroying the retained disk")
		s.deletePod(ctx, "app")
		s.deleteClaim(ctx, "data")
		Expect(x.Host.API.Delete(ctx, until[corev1.PersistentVolume](ctx, s, x.Host, volume, phase(corev1.VolumeReleased)))).To(Succeed())
		gone[corev1.PersistentVolume](ctx, s, x.Host, volume)
		registration(ctx, one, orphaned(volume, v1alpha1.ReasonRootGone))
		s.destroyOrphan(ctx, volume)
	}, SpecTimeout(3*storyTime))
})
