package manifests_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

const offeredBy = v1alpha1.LabelOfferedByPrefix + "cluster38"

// reflected returns a reflected class as the manager creates it.
func reflected(change ...func(client.Object)) *storagev1.StorageClass {
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: unique("class"), Labels: map[string]string{
			v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, offeredBy: "true",
		}},
		Provisioner: v1alpha1.ProvisionerName,
	}
	for _, f := range change {
		f(class)
	}
	return class
}

func provisionedBy(driver string) func(client.Object) {
	return func(o client.Object) { o.(*storagev1.StorageClass).Provisioner = driver }
}

var _ = Describe("The policy on reflected classes", Ordered, func() {
	var manager client.Client

	BeforeAll(func(ctx SpecContext) {
		manager = as(managerAccount)
		By("waiting until the policy is in force")
		Eventually(ctx, func(ctx context.Context) error {
			return manager.Create(ctx, reflected(label(offeredBy, "")), client.DryRunAll)
		}).Should(MatchError(ContainSubstring("reflected from a member")))
	}, NodeTimeout(settle))

	made := func(ctx context.Context, change ...func(client.Object)) *storagev1.StorageClass {
		GinkgoHelper()
		class := reflected(change...)
		Expect(admin.Create(ctx, class)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(admin.Delete(ctx, class))).To(Succeed()) }, NodeTimeout(settle))
		return class
	}

	It("lets the manager create, change and delete reflected classes", func(ctx SpecContext) {
		class := reflected()
		Expect(manager.Create(ctx, class)).To(Succeed())
		Expect(changed(ctx, manager, false, class, label(v1alpha1.LabelOfferedByPrefix+"cluster39", "true"))).To(Succeed())
		Expect(manager.Delete(ctx, class)).To(Succeed())
	}, SpecTimeout(settle))

	DescribeTable("rejects the manager's writes to all other classes", func(ctx SpecContext, change func(client.Object)) {
		Expect(manager.Create(ctx, reflected(change))).To(MatchError(ContainSubstring("may create only")))
		own := made(ctx, change)
		Expect(changed(ctx, manager, false, own, annotate("a", "b"))).To(MatchError(ContainSubstring("may")))
		Expect(manager.Delete(ctx, own)).To(MatchError(ContainSubstring("may change only")))
	},
		Entry("of another driver", SpecTimeout(settle), provisionedBy("ebs.csi.aws.com")),
		Entry("without the common label", SpecTimeout(settle), label(v1alpha1.LabelManagedBy, "")),
		Entry("with the common label of another tool", SpecTimeout(settle), label(v1alpha1.LabelManagedBy, "Helm")),
		Entry("that no member offers", SpecTimeout(settle), label(offeredBy, "")),
	)

	It("prevents the manager from setting parameters, with which a class selects what only admins decide", func(ctx SpecContext) {
		chosen := func(o client.Object) {
			o.(*storagev1.StorageClass).Parameters = map[string]string{v1alpha1.ParameterRelease: v1alpha1.ReleaseWhenUnused}
		}
		Expect(manager.Create(ctx, reflected(chosen))).To(MatchError(ContainSubstring("with parameters")))
	}, SpecTimeout(settle))

	It("prevents the manager from adding or removing the label of reflected classes", func(ctx SpecContext) {
		Expect(changed(ctx, manager, false, made(ctx, label(offeredBy, "")), label(offeredBy, "true"))).To(MatchError(ContainSubstring("may change only")))
		Expect(changed(ctx, manager, false, made(ctx), label(offeredBy, ""))).To(MatchError(ContainSubstring("may create only")))
	}, SpecTimeout(settle))

	It("does not limit admins", func(ctx SpecContext) {
		class := made(ctx)
		Expect(changed(ctx, admin, false, class, label(offeredBy, ""))).To(Succeed())
		Expect(admin.Delete(ctx, class)).To(Succeed())
	}, SpecTimeout(settle))
})
