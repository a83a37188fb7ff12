package stories_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// leafClass waits until a claim has a leaf claim in a member, and returns the leaf claim's class.
func (s *story) leafClass(ctx context.Context, member, claim string) string {
	GinkgoHelper()
	return ptr.Deref(until[corev1.PersistentVolumeClaim](ctx, s, x.Member(member), claim, Not(BeNil())).Spec.StorageClassName, "")
}

// inHost creates an object in the host, and deletes it at the end of the story.
func inHost(ctx context.Context, obj client.Object) {
	GinkgoHelper()
	Expect(x.Host.API.Create(ctx, obj)).To(Succeed())
	DeferCleanup(remove, x.Host, obj, NodeTimeout(settle))
}

var _ = Describe("A StorageClass in the host", func() {
	It("maps to the member's class that the registration's mapping, or the class's own parameter, names", func(ctx SpecContext) {
		s := sample(ctx, "class-mapping.yaml", two)
		s.running(ctx, "shop", nodeTwo)
		Expect(s.leafClass(ctx, two, "orders")).To(Equal(controlplane.ClassFast))
		Expect(s.leafClass(ctx, two, "history")).To(Equal(controlplane.ClassRetained))
	}, SpecTimeout(storyTime))

	It("maps to the member's class with the same name, but without the registration's prefix", func(ctx SpecContext) {
		s := sample(ctx, "prefix.yaml", two)
		s.running(ctx, "app", nodeTwo)
		Expect(s.leafClass(ctx, two, "data")).To(Equal(controlplane.ClassHostpath))
	}, SpecTimeout(storyTime))

	It("maps by default to the member's class with the same name, but without the prefix virtual-disk- (seed 000), and waits until that class exists", func(ctx SpecContext) {
		s := begin(ctx)
		inHost(ctx, hostClass("virtual-disk-late", ""))
		s.claim(ctx, "data", ofClass("virtual-disk-late"))
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.noted(ctx, "PersistentVolumeClaim", "data", "ClassNotOffered",
			fmt.Sprintf(`member %q has no StorageClass "late" (by the prefix "virtual-disk-" in ClusterRegistration %q)`, one, one))
		class := controlplane.Class("late", storagev1.VolumeBindingWaitForFirstConsumer, corev1.PersistentVolumeReclaimDelete)
		class.Provisioner = controlplane.DefaultDriverName
		inMember(ctx, x.Member(one), &class)
		s.running(ctx, "app", nodeOne)
		Expect(s.leafClass(ctx, one, "data")).To(Equal("late"))
	}, SpecTimeout(storyTime))

	It("is named only by the old annotation: the claim is rejected or, if it existed before the class, reports the remedy, and the scheduler keeps working", func(ctx SpecContext) {
		s := begin(ctx)
		annotated := func(class string) claimOption {
			return func(c *corev1.PersistentVolumeClaim) {
				c.Spec.StorageClassName, c.Annotations = nil, map[string]string{corev1.BetaStorageClassAnnotation: class}
			}
		}
		Eventually(func() error {
			return x.Host.API.Create(ctx, s.newClaim("new", annotated(classMirror)), client.DryRunAll)
		}).WithContext(ctx).Should(MatchError(ContainSubstring("Replace the annotation with spec.storageClassName: " + classMirror)))

		old := "late-" + s.namespace
		s.claim(ctx, "old", annotated(old))
		inHost(ctx, hostClass(old, controlplane.ClassHostpath))
		counted := func() (string, error) {
			return metric(ctx, fmt.Sprintf("xylem_claims_with_class_only_in_annotation{class=%q}", old))
		}
		Eventually(counted).WithContext(ctx).Should(Equal("1"))
		remedy := fmt.Sprintf(`{"spec":{"storageClassName":"%s"}}`, old)
		s.shown(ctx, "PersistentVolumeClaim", "old", v1alpha1.ReasonClassInvalid, "kube-scheduler 1.37 panic", remedy)
		By("following the remedy, after which the scheduler compares the members for the claim")
		patch(ctx, x.Host, s.newClaim("old"), remedy)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "old", suite.Unreported())
		Eventually(counted).WithContext(ctx).Should(Equal("0"))
		s.pod(ctx, "app", using("old"))
		s.running(ctx, "app")
	}, SpecTimeout(storyTime))

	It("reports its invalid parameters, as do its claims, and Xylem provisions no volume", func(ctx SpecContext) {
		s := begin(ctx)
		inHost(ctx, hostClass("misspelled", "", func(c *storagev1.StorageClass) {
			c.Parameters = map[string]string{"xylem.io/memberclass": controlplane.ClassFast, v1alpha1.ParameterProvisioning: "Mirror"}
		}))
		s.noted(ctx, "StorageClass", "misspelled", "ClassInvalid", "xylem.io/memberclass", `"Mirror"`)
		s.claim(ctx, "data", ofClass("misspelled"))
		s.pod(ctx, "app", using("data"))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", tells("ClassInvalid", "xylem.io/memberclass", `"Mirror"`))
		s.noted(ctx, "PersistentVolumeClaim", "data", "ClassInvalid")
		s.barrier(ctx, nodeOne)
		for _, m := range []string{one, two} {
			Expect(s.book(m, "data").Calls(ledger.CreateVolume)).To(BeZero())
		}
	}, SpecTimeout(storyTime))
})
