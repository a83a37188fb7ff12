package stories_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/integration/harness"
)

var _ = Describe("A Pod with a PriorityClass", Ordered, func() {
	createAll := func(ctx SpecContext, c *harness.Cluster, objects ...client.Object) {
		GinkgoHelper()
		for _, o := range objects {
			Expect(c.API.Create(ctx, o)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) {
				Expect(client.IgnoreNotFound(c.API.Delete(ctx, o))).To(Succeed())
			}, NodeTimeout(settle))
		}
	}
	class := func(name string, value int32) *schedulingv1.PriorityClass {
		never := corev1.PreemptNever
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, PreemptionPolicy: &never}
	}
	permission := func(name string) []client.Object {
		return []client.Object{
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{"xylem.io"}, Resources: []string{"priorityclasses"}, ResourceNames: []string{name}, Verbs: []string{"use"},
			}}},
			&rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: harness.MemberUser}},
			},
		}
	}
	prioritized := func(name string) podOption { return func(p *corev1.Pod) { p.Spec.PriorityClassName = name } }

	BeforeAll(func(ctx SpecContext) {
		createAll(ctx, x.Host, class(priorityGranted, 1), class(priorityUngranted, 2), class(priorityAbsent, 3), class(priorityUnmapped, 4))
		createAll(ctx, x.Member(one), class(leafPriorityGranted, 1000), class(leafPriorityUngranted, 2000))
		createAll(ctx, x.Member(one), permission(leafPriorityGranted)...)
	}, NodeTimeout(settle))

	It("gets the member's class and its preemption policy if the registration maps it and the member's admin grants it", func(ctx SpecContext) {
		s := begin(ctx)
		s.pod(ctx, "app", on(nodeOne), prioritized(priorityGranted))
		s.running(ctx, "app", nodeOne)
		leaf, err := read[corev1.Pod](ctx, s, x.Member(one), "app")
		Expect(err).NotTo(HaveOccurred())
		Expect(leaf.Spec.PriorityClassName).To(Equal(leafPriorityGranted))
		Expect(leaf.Spec.Priority).To(HaveValue(BeEquivalentTo(1000)))
		Expect(leaf.Spec.PreemptionPolicy).To(HaveValue(Equal(corev1.PreemptNever)))
	}, SpecTimeout(storyTime))

	It("runs with the member's default priority if the registration does not map it, and reports that", func(ctx SpecContext) {
		s := begin(ctx)
		s.pod(ctx, "app", on(nodeOne), prioritized(priorityUnmapped))
		s.running(ctx, "app", nodeOne)
		s.noted(ctx, "Pod", "app", v1alpha1.ReasonFieldsLeftOut, one, `spec.priorityClassName "`+priorityUnmapped+`"`, "does not map the class in spec.pods.priorityClasses")
		leaf, err := read[corev1.Pod](ctx, s, x.Member(one), "app")
		Expect(err).NotTo(HaveOccurred())
		Expect(leaf.Spec.PriorityClassName).To(BeEmpty())
	}, SpecTimeout(storyTime))

	It("waits and reports what to do if the member does not have or does not grant the class", func(ctx SpecContext) {
		s := begin(ctx)
		s.pod(ctx, "absent", on(nodeOne), prioritized(priorityAbsent))
		until[corev1.Pod](ctx, s, x.Host, "absent", tells(v1alpha1.ReasonRefusedByMember, one, "no PriorityClass with name "+leafPriorityAbsent+" was found"))
		s.pod(ctx, "app", on(nodeOne), prioritized(priorityUngranted))
		until[corev1.Pod](ctx, s, x.Host, "app", tells(v1alpha1.ReasonRefusedByMember, one,
			`may not use PriorityClass "`+leafPriorityUngranted+`"`, `"priorityclasses.xylem.io"`, "ask the member's admin"))

		By("granting the class")
		createAll(ctx, x.Member(one), permission(leafPriorityUngranted)...)
		s.running(ctx, "app", nodeOne)
		leaf, err := read[corev1.Pod](ctx, s, x.Member(one), "app")
		Expect(err).NotTo(HaveOccurred())
		Expect(leaf.Spec.PriorityClassName).To(Equal(leafPriorityUngranted))
	}, SpecTimeout(storyTime))
})
