package manifests_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

var _ = Describe("The policy on classes of claims", Ordered, func() {
	var (
		ours, theirs string
		existing     *corev1.PersistentVolumeClaim
		tenant       client.Client
	)

	newClass := func(ctx context.Context, name, provisioner string) {
		GinkgoHelper()
		waits := storagev1.VolumeBindingWaitForFirstConsumer
		class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: &waits}
		Expect(admin.Create(ctx, class)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, class)).To(Succeed()) }, NodeTimeout(settle))
	}
	// annotated returns a claim whose class only the old annotation names.
	annotated := func(class string, change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		c := claim("default")
		c.Name, c.Spec.StorageClassName = unique("annotated"), nil
		annotate(corev1.BetaStorageClassAnnotation, class)(c)
		for _, apply := range change {
			apply(c)
		}
		return c
	}

	BeforeAll(func(ctx SpecContext) {
		tenant = as("tenant")
		ours, theirs = unique("ours"), unique("theirs")
		existing = annotated(ours)
		Expect(tenant.Create(ctx, existing)).To(Succeed(), "before the class exists")
		newClass(ctx, ours, v1alpha1.ProvisionerName)
		newClass(ctx, theirs, "disk.example.com")
	}, NodeTimeout(settle))

	It("rejects a claim if only the old annotation names one of Xylem's classes, and names the remedy", func(ctx SpecContext) {
		Eventually(ctx, func(ctx context.Context) error {
			return tenant.Create(ctx, annotated(ours), client.DryRunAll)
		}).Should(MatchError(SatisfyAll(ContainSubstring("only the annotation volume.beta.kubernetes.io/storage-class"),
			ContainSubstring("Replace the annotation with spec.storageClassName: "+ours))))
	}, SpecTimeout(settle))

	DescribeTable("accepts a claim for which the scheduler does not panic", func(ctx SpecContext, class *string, change func(*corev1.PersistentVolumeClaim)) {
		Expect(tenant.Create(ctx, annotated(*class, change), client.DryRunAll)).To(Succeed())
	},
		Entry("of another provisioner's class", SpecTimeout(settle), &theirs, func(*corev1.PersistentVolumeClaim) {}),
		Entry("whose field names the same class", SpecTimeout(settle), &ours, func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &ours }),
		Entry("whose field names another class", SpecTimeout(settle), &ours, func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &theirs }),
		Entry("without the annotation", SpecTimeout(settle), &ours, func(c *corev1.PersistentVolumeClaim) { c.Annotations, c.Spec.StorageClassName = nil, &ours }),
		Entry("that requests a volume by name", SpecTimeout(settle), &ours, func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "some-volume" }),
	)

	It("does not restrict claims that exist: their metadata, status, class and deletion", func(ctx SpecContext) {
		const finalizer = "example.com/hold"
		fresh := func() *corev1.PersistentVolumeClaim {
			GinkgoHelper()
			c := existing.DeepCopy()
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(existing), c)).To(Succeed())
			return c
		}
		hold := func(finalizers ...string) func(client.Object) {
			return func(o client.Object) { o.SetFinalizers(finalizers) }
		}
		Expect(changed(ctx, tenant, false, fresh(), label("a", "b"))).To(Succeed())
		Expect(changed(ctx, tenant, false, fresh(), hold(finalizer))).To(Succeed())
		Expect(changed(ctx, tenant, true, fresh(), func(o client.Object) {
			o.(*corev1.PersistentVolumeClaim).Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: "Seen", Status: corev1.ConditionTrue}}
		})).To(Succeed())
		By("applying the remedy: the field may be set to the annotation's class")
		Expect(changed(ctx, tenant, false, fresh(), func(o client.Object) {
			o.(*corev1.PersistentVolumeClaim).Spec.StorageClassName = &ours
		})).To(Succeed())
		Expect(tenant.Delete(ctx, fresh())).To(Succeed())
		Expect(changed(ctx, tenant, false, fresh(), hold())).To(Succeed())
	}, SpecTimeout(settle))
})
