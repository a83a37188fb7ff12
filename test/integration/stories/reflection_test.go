package stories_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// offerLabel is the label by which the sample selects classes.
const offerLabel = "xylem-example/offer"

// offered creates a default class in a member, with the label by which the member's admin offers
// it.
func offered(ctx context.Context, m *harness.Cluster, name string, change ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	GinkgoHelper()
	class := controlplane.Class(name, storagev1.VolumeBindingWaitForFirstConsumer, corev1.PersistentVolumeReclaimDelete)
	class.Provisioner = controlplane.DefaultDriverName
	class.Labels = map[string]string{offerLabel: "true"}
	class.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	for _, f := range change {
		f(&class)
	}
	inMember(ctx, m, &class)
	return &class
}

func retaining(c *storagev1.StorageClass) { *c.ReclaimPolicy = corev1.PersistentVolumeReclaimRetain }

// reflecting enables the reflection of offered classes until the story ends.
func reflecting(ctx context.Context, registration string, atMost int) {
	GinkgoHelper()
	patchReflect(ctx, registration, fmt.Sprintf(`{"enabled":true,"selector":{"matchLabels":{%q:"true"}},"max":%d}`, offerLabel, atMost))
	DeferCleanup(stopReflecting, registration, NodeTimeout(settle))
}

func stopReflecting(ctx SpecContext, registration string) {
	patchReflect(ctx, registration, `{"enabled":false,"selector":null,"max":null}`)
	Eventually(ctx, func(ctx context.Context) ([]storagev1.StorageClass, error) {
		var list storagev1.StorageClassList
		err := x.Host.API.List(ctx, &list, client.HasLabels{v1alpha1.LabelOfferedByPrefix + registration})
		return list.Items, err
	}).Should(BeEmpty())
}

func patchReflect(ctx context.Context, name, reflect string) {
	GinkgoHelper()
	cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	patch(ctx, x.Host, cr, `{"spec":{"storage":{"reflect":`+reflect+`}}}`)
}

// hostHas waits until the host's class with this name matches.
func hostHas(ctx context.Context, name string, match gomegatypes.GomegaMatcher) *storagev1.StorageClass {
	GinkgoHelper()
	var class storagev1.StorageClass
	Eventually(ctx, func(ctx context.Context) (*storagev1.StorageClass, error) {
		class = storagev1.StorageClass{}
		err := x.Host.API.Get(ctx, client.ObjectKey{Name: name}, &class)
		return &class, err
	}).Should(match)
	return &class
}

func hostLacks(ctx context.Context, name string) {
	GinkgoHelper()
	gone[storagev1.StorageClass](ctx, &story{}, x.Host, name)
}

// by matches a host class that the given members offer, and whose topologies allow only these
// members.
func by(ctx context.Context, policy corev1.PersistentVolumeReclaimPolicy, members ...string) gomegatypes.GomegaMatcher {
	GinkgoHelper()
	labels := map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}
	var ids []string
	for _, m := range members {
		labels[v1alpha1.LabelOfferedByPrefix+m] = "true"
		ids = append(ids, idOf(ctx, x.Member(m)))
	}
	return And(
		HaveField("Labels", Equal(labels)), HaveField("ReclaimPolicy", HaveValue(Equal(policy))),
		HaveField("AllowedTopologies", ConsistOf(HaveField("MatchLabelExpressions", ConsistOf(
			And(HaveField("Key", v1alpha1.LabelClusterID), HaveField("Values", ConsistOf(ids))))))),
	)
}

const deletes, retains = corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain

var _ = Describe("A class that a member offers", func() {
	It("is published in the host, serves claims in the members that offer it, and is deleted when no member offers it", suite.Slow, suite.Core, func(ctx SpecContext) {
		class := offered(ctx, x.Member(two), "bronze")
		offered(ctx, x.Member(two), "unlabelled", func(c *storagev1.StorageClass) { c.Labels = nil })
		s := sample(ctx, "reflection.yaml", two)
		host := hostHas(ctx, "bronze", by(ctx, deletes, two))
		Expect(host.Provisioner).To(Equal(v1alpha1.ProvisionerName))
		Expect(host.VolumeBindingMode).To(HaveValue(Equal(storagev1.VolumeBindingWaitForFirstConsumer)))
		Expect(host.AllowVolumeExpansion).To(HaveValue(BeTrue()))
		Expect(host.Annotations).To(BeEmpty(), "a member's default class must not be the host's default")
		Expect(strangers("root StorageClass", host)).To(BeEmpty())
		s.running(ctx, "app", nodeTwo)
		hostLacks(ctx, "unlabelled")
		registration(ctx, two, says(v1alpha1.ConditionClassesReflected, metav1.ConditionTrue, v1alpha1.ReasonReflected, "bronze"))

		By("checking that no Pod is scheduled to a member that has the class but does not offer it")
		own := controlplane.Class("bronze", storagev1.VolumeBindingWaitForFirstConsumer, deletes)
		own.Provisioner = controlplane.DefaultDriverName
		inMember(ctx, x.Member(one), &own)
		s.claim(ctx, "other", ofClass("bronze"))
		s.pod(ctx, "other", using("other"), preferring(nodeOne))
		s.running(ctx, "other", nodeTwo)
		s.claim(ctx, "pinned", ofClass("bronze"))
		s.pod(ctx, "pinned", using("pinned"), on(nodeOne))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "pinned", tells("ClassNotOffered", "("+two+")", `member "`+one+`" is excluded`))

		By("replacing the member's class with an equal one, changing whether it allows expansion, and then its reclaim policy, so that Xylem re-creates the host's class")
		patch(ctx, x.Host, host, `{"metadata":{"annotations":{"xylem-example/theirs":"kept"}}}`)
		Expect(x.Member(two).API.Delete(ctx, class)).To(Succeed())
		class = offered(ctx, x.Member(two), "bronze")
		patch(ctx, x.Member(two), class, `{"allowVolumeExpansion":false}`)
		hostHas(ctx, "bronze", And(HaveField("UID", host.UID), HaveField("AllowVolumeExpansion", HaveValue(BeFalse()))))
		Expect(x.Member(two).API.Delete(ctx, class)).To(Succeed())
		offered(ctx, x.Member(two), "bronze", retaining)
		hostHas(ctx, "bronze", And(by(ctx, retains, two), HaveField("UID", Not(Equal(host.UID))),
			HaveField("Annotations", HaveKeyWithValue("xylem-example/theirs", "kept"))))

		By("deleting the class, after which bound claims keep their volumes")
		patchReflect(ctx, two, `{"selector":{"matchLabels":{"xylem-example/offer":"no"}}}`)
		hostLacks(ctx, "bronze")
		Expect(until[corev1.PersistentVolume](ctx, s, x.Host, s.bound(ctx, "data").Spec.VolumeName, Not(BeNil())).
			Spec.PersistentVolumeReclaimPolicy).To(Equal(deletes))
		s.deletePod(ctx, "app")
		s.deleteClaim(ctx, "data")
		Eventually(func() int { return len(s.book(two, "data").Live()) }).Should(BeZero(), "the volume's own policy must apply")
	}, SpecTimeout(storyTime))

	It("causes few writes in the host even if it changes repeatedly", func(ctx SpecContext) {
		begin(ctx)
		class := offered(ctx, x.Member(two), "restless")
		reflecting(ctx, two, 8)
		hostHas(ctx, "restless", by(ctx, deletes, two))
		books := opened(ctx)
		const changes = 200
		for i := range changes + 1 {
			patch(ctx, x.Member(two), class, fmt.Sprintf(`{"allowVolumeExpansion":%t}`, i%2 == 1))
		}
		hostHas(ctx, "restless", HaveField("AllowVolumeExpansion", HaveValue(BeFalse())))
		writes := books.requests(ctx, x.Host).Writes().Where(func(r controlplane.Request) bool { return r.Resource == "storageclasses" })
		Expect(len(writes)).To(BeNumerically("<", changes/10), writes.String())
	}, SpecTimeout(storyTime))

	It("is published once if two members offer the same class; otherwise, the older registration's class is published, and the other registration reports the conflict", suite.Slow, func(ctx SpecContext) {
		begin(ctx)
		first := offered(ctx, x.Member(one), "silver")
		second := offered(ctx, x.Member(two), "silver")
		reflecting(ctx, two, 8)
		hostHas(ctx, "silver", by(ctx, deletes, two))
		reflecting(ctx, one, 8)
		hostHas(ctx, "silver", by(ctx, deletes, one, two))

		Expect(x.Member(two).API.Delete(ctx, second)).To(Succeed())
		offered(ctx, x.Member(two), "silver", retaining)
		hostHas(ctx, "silver", by(ctx, deletes, one))
		registration(ctx, two, says(v1alpha1.ConditionClassesReflected, metav1.ConditionFalse, v1alpha1.ReasonReflectionConflict, "silver", "Retain", "Delete", one))
		(&story{}).noted(ctx, "ClusterRegistration", two, v1alpha1.ReasonReflectionConflict, "silver")

		By("deleting the first member's class, after which the other member's class replaces it")
		Expect(x.Member(one).API.Delete(ctx, first)).To(Succeed())
		hostHas(ctx, "silver", by(ctx, retains, two))
		registration(ctx, two, says(v1alpha1.ConditionClassesReflected, metav1.ConditionTrue, v1alpha1.ReasonReflected))
	}, SpecTimeout(storyTime))

	It("does not change a foreign class in the host, is published when the foreign class is deleted, and counts toward the maximum", func(ctx SpecContext) {
		begin(ctx)
		own := &storagev1.StorageClass{
			ObjectMeta:  metav1.ObjectMeta{Name: "gold", Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}},
			Provisioner: "ebs.csi.example.com", ReclaimPolicy: ptr.To(retains),
		}
		inHost(ctx, own)
		offered(ctx, x.Member(two), "gold")
		offered(ctx, x.Member(two), "gold-2")
		reflecting(ctx, two, 1)
		registration(ctx, two, And(
			says(v1alpha1.ConditionClassesReflected, metav1.ConditionFalse, v1alpha1.ReasonTooManyClasses, "gold-2", `class "gold", because the host has a class with that name`),
			says(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)))
		var now storagev1.StorageClass
		Expect(x.Host.API.Get(ctx, client.ObjectKeyFromObject(own), &now)).To(Succeed())
		Expect(now.ResourceVersion).To(Equal(own.ResourceVersion))
		Expect(x.Host.API.Delete(ctx, own)).To(Succeed())
		hostHas(ctx, "gold", by(ctx, deletes, two))
		hostLacks(ctx, "gold-2")
		patchReflect(ctx, two, `{"max":2}`)
		hostHas(ctx, "gold-2", by(ctx, deletes, two))
		registration(ctx, two, says(v1alpha1.ConditionClassesReflected, metav1.ConditionTrue, v1alpha1.ReasonReflected))

		By("setting an invalid selector, which selects nothing")
		patchReflect(ctx, two, `{"selector":{"matchLabels":{"xylem-example/offer":"not a label"}}}`)
		registration(ctx, two, And(
			says(v1alpha1.ConditionClassesReflected, metav1.ConditionFalse, v1alpha1.ReasonSelectorInvalid, "not a label"),
			says(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)))
	}, SpecTimeout(storyTime))

	It("is kept in the host while the member is away, even if the manager restarts, but is deleted if an admin disables reflection", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		class := offered(ctx, x.Member(one), "copper")
		offered(ctx, x.Member(one), "iron")
		reflecting(ctx, one, 8)
		copper := hostHas(ctx, "copper", by(ctx, deletes, one))
		hostHas(ctx, "iron", by(ctx, deletes, one))

		proxy := x.Fleet.Member(one).Proxy()
		Expect(proxy.SetMode(controlplane.Cut)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(proxy.SetMode(controlplane.Pass)).To(Succeed())
			Expect(x.AwaitReady(ctx, one)).To(Succeed())
		}, NodeTimeout(settle))
		registration(ctx, one, HaveField("Status.Conditions", ContainElement(And(HaveField("Type", v1alpha1.ConditionConnected), HaveField("Status", metav1.ConditionFalse)))))
		Expect(x.Manager.Stop()).To(Succeed())
		Expect(x.Manager.Start(ctx)).To(Succeed())
		s.barrier(ctx, nodeTwo)
		Expect(hostHas(ctx, "copper", by(ctx, deletes, one)).ResourceVersion).To(Equal(copper.ResourceVersion))

		By("deleting a class in the member before the member is connected again")
		Expect(x.Member(one).API.Delete(ctx, class)).To(Succeed())
		Expect(proxy.SetMode(controlplane.Pass)).To(Succeed())
		hostLacks(ctx, "copper")
		hostHas(ctx, "iron", by(ctx, deletes, one))

		By("disabling reflection while the member is away")
		Expect(proxy.SetMode(controlplane.Cut)).To(Succeed())
		patchReflect(ctx, one, `{"enabled":false}`)
		hostLacks(ctx, "iron")
		registration(ctx, one, HaveField("Status.Conditions", Not(ContainElement(HaveField("Type", v1alpha1.ConditionClassesReflected)))))
	}, SpecTimeout(storyTime))
})
