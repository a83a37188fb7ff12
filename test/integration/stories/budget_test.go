package stories_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/integration/harness"
)

var _ = Describe("A PodDisruptionBudget for Pods in members", func() {
	labelled := func(p *corev1.Pod) { p.Labels = map[string]string{"app": "db"} }
	// budget creates a budget that requires a number of healthy Pods.
	budget := func(ctx context.Context, s *story, required int32) *policyv1.PodDisruptionBudget {
		GinkgoHelper()
		b := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "db"},
			Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(required)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}},
		}
		Expect(x.Host.API.Create(ctx, b)).To(Succeed())
		return b
	}
	// enforced matches a leaf budget that its cluster's disruption controller has observed.
	enforced := func(minAvailable, allowed int) gomegatypes.GomegaMatcher {
		return And(
			HaveField("Spec.MinAvailable.IntVal", BeEquivalentTo(minAvailable)), HaveField("Status.DisruptionsAllowed", BeEquivalentTo(allowed)),
			WithTransform(func(b *policyv1.PodDisruptionBudget) bool { return b.Status.ObservedGeneration == b.Generation }, BeTrue()),
		)
	}
	evict := func(ctx context.Context, s *story, c *harness.Cluster, pod string) error {
		meta := metav1.ObjectMeta{Namespace: s.namespace, Name: pod}
		return c.API.SubResource("eviction").Create(ctx, &corev1.Pod{ObjectMeta: meta}, &policyv1.Eviction{ObjectMeta: meta})
	}
	refused := And(Satisfy(apierrors.IsTooManyRequests), MatchError(ContainSubstring("would violate the pod's disruption budget")))
	// healthy counts the leaf Pods that serve, in all members.
	healthy := func(ctx context.Context, s *story) (n int) {
		GinkgoHelper()
		for _, name := range []string{one, two} {
			var pods corev1.PodList
			Expect(x.Member(name).API.List(ctx, &pods, client.InNamespace(s.namespace))).To(Succeed())
			for i := range pods.Items {
				if ok, err := isTrue(corev1.PodReady).Match(&pods.Items[i]); err == nil && ok && pods.Items[i].DeletionTimestamp == nil {
					n++
				}
			}
		}
		return n
	}

	It("refuses evictions in the member until an evicted Pod is replaced", func(ctx SpecContext) {
		s := begin(ctx)
		budget(ctx, s, 1)
		for i := range 2 {
			s.pod(ctx, fmt.Sprintf("db-%d", i), on(nodeOne), labelled)
		}
		for i := range 2 {
			s.running(ctx, fmt.Sprintf("db-%d", i), nodeOne)
		}
		member := x.Member(one)
		leaf := until[policyv1.PodDisruptionBudget](ctx, s, member, "db", enforced(1, 1))
		Expect(leaf.Spec.Selector.MatchLabels).To(HaveKey(v1alpha1.LabelHost))
		Expect(strangers("leaf PodDisruptionBudget", leaf)).To(BeEmpty())

		By("evicting both Pods at the same moment, as the drain of two nodes does")
		results := make([]error, 2)
		var evictions sync.WaitGroup
		for i := range results {
			evictions.Go(func() { results[i] = evict(ctx, s, member, fmt.Sprintf("db-%d", i)) })
		}
		evictions.Wait()
		Expect(results).To(ContainElement(BeNil()))
		Expect(results).To(ContainElement(Satisfy(apierrors.IsTooManyRequests)))
		evicted, left := "db-0", "db-1"
		if results[0] != nil {
			evicted, left = left, evicted
		}

		By("repeating the eviction of the other Pod until the host has replaced the first one")
		tries := 0
		refusedNow := func() {
			GinkgoHelper()
			tries++
			Expect(evict(ctx, s, member, left)).To(refused)
			Expect(healthy(ctx, s)).To(BeNumerically(">=", 1))
		}
		Eventually(ctx, func(g Gomega) {
			refusedNow()
			pod, err := read[corev1.Pod](ctx, s, x.Host, evicted)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pod.Status.Phase).To(Equal(corev1.PodFailed))
		}).WithPolling(20 * time.Millisecond).Should(Succeed())
		until[policyv1.PodDisruptionBudget](ctx, s, x.Host, "db", HaveField("Status.DisruptionsAllowed", BeEquivalentTo(0)))
		refusedNow()
		s.deletePod(ctx, evicted)
		gone[corev1.Pod](ctx, s, x.Host, evicted)
		refusedNow()
		s.pod(ctx, evicted, on(nodeOne), labelled)
		s.running(ctx, evicted, nodeOne)
		Eventually(ctx, func() error { return evict(ctx, s, member, left) }).Should(Succeed())
		Expect(evict(ctx, s, member, evicted)).To(refused)
		AddReportEntry(fmt.Sprintf("refused %d evictions while one Pod was healthy", tries))

		By("deleting the budget")
		Expect(x.Host.API.Delete(ctx, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "db"}})).To(Succeed())
		gone[policyv1.PodDisruptionBudget](ctx, s, member, "db")
		Expect(evict(ctx, s, member, evicted)).To(Succeed())
	}, SpecTimeout(storyTime))

	It("holds while Xylem is down, and follows a changed budget", func(ctx SpecContext) {
		s := begin(ctx)
		b := budget(ctx, s, 2)
		for i := range 2 {
			s.pod(ctx, fmt.Sprintf("db-%d", i), on(nodeOne), labelled)
		}
		for i := range 2 {
			s.running(ctx, fmt.Sprintf("db-%d", i), nodeOne)
		}
		member := x.Member(one)
		until[policyv1.PodDisruptionBudget](ctx, s, member, "db", enforced(2, 0))
		Expect(x.Manager.Stop()).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(x.Manager.Start(ctx)).To(Succeed()) }, NodeTimeout(settle))
		Expect(evict(ctx, s, member, "db-0")).To(refused)
		was := b.DeepCopy()
		b.Spec.MinAvailable, b.Spec.MaxUnavailable = nil, new(intstr.FromInt32(1))
		Expect(x.Host.API.Patch(ctx, b, client.MergeFrom(was))).To(Succeed())
		Expect(x.Manager.Start(ctx)).To(Succeed())
		By("allowing no evictions while the host cannot count them: its budget does not support Pods without a controller")
		until[policyv1.PodDisruptionBudget](ctx, s, member, "db", And(HaveField("Status.DisruptionsAllowed", BeEquivalentTo(0)),
			HaveField("Spec.MinAvailable.IntVal", BeNumerically(">", 2))))
		was = b.DeepCopy()
		b.Spec.MinAvailable, b.Spec.MaxUnavailable = new(intstr.FromInt32(1)), nil
		Expect(x.Host.API.Patch(ctx, b, client.MergeFrom(was))).To(Succeed())
		until[policyv1.PodDisruptionBudget](ctx, s, member, "db", enforced(1, 1))

		By("deleting the Pods, after which the member needs no budget")
		for i := range 2 {
			s.deletePod(ctx, fmt.Sprintf("db-%d", i))
		}
		gone[policyv1.PodDisruptionBudget](ctx, s, member, "db")
	}, SpecTimeout(storyTime))

	It("adds up its Pods in two members", func(ctx SpecContext) {
		s := begin(ctx)
		budget(ctx, s, 2)
		nodes := map[string]string{"a": nodeOne, "b": nodeTwo, "c": nodeTwo}
		for name, node := range nodes {
			s.pod(ctx, name, on(node), labelled)
		}
		for name, node := range nodes {
			s.running(ctx, name, node)
		}
		first, second := x.Member(one), x.Member(two)
		until[policyv1.PodDisruptionBudget](ctx, s, first, "db", enforced(0, 1))
		until[policyv1.PodDisruptionBudget](ctx, s, second, "db", enforced(1, 1))

		By("evicting a Pod in one member")
		Expect(evict(ctx, s, first, "a")).To(Succeed())
		since := time.Now()
		Eventually(ctx, func(g Gomega) {
			leaf, err := read[policyv1.PodDisruptionBudget](ctx, s, second, "db")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(leaf.Spec.MinAvailable.IntVal).To(BeEquivalentTo(2))
		}).WithPolling(2 * time.Millisecond).Should(Succeed())
		AddReportEntry("the other member's budget followed after " + time.Since(since).Round(time.Millisecond).String())
		for _, name := range []string{"b", "c"} {
			Expect(evict(ctx, s, second, name)).To(Satisfy(apierrors.IsTooManyRequests))
		}
		Expect(healthy(ctx, s)).To(Equal(2))

		By("replacing the Pod")
		until[corev1.Pod](ctx, s, x.Host, "a", phase(corev1.PodFailed))
		s.deletePod(ctx, "a")
		gone[corev1.Pod](ctx, s, x.Host, "a")
		s.pod(ctx, "a", on(nodeOne), labelled)
		s.running(ctx, "a", nodeOne)
		until[policyv1.PodDisruptionBudget](ctx, s, second, "db", enforced(1, 1))
		Expect(evict(ctx, s, second, "b")).To(Succeed())
		until[policyv1.PodDisruptionBudget](ctx, s, first, "db", enforced(1, 0))
		Expect(evict(ctx, s, first, "a")).To(refused)
		Expect(healthy(ctx, s)).To(Equal(2))
	}, SpecTimeout(storyTime))

	It("does not count a Pod whose readiness gate is open", func(ctx SpecContext) {
		s := begin(ctx)
		budget(ctx, s, 1)
		s.pod(ctx, "db-0", on(nodeOne), labelled)
		s.pod(ctx, "db-1", on(nodeOne), labelled, func(p *corev1.Pod) {
			p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/balanced"}}
		})
		s.running(ctx, "db-0", nodeOne)
		until[corev1.Pod](ctx, s, x.Host, "db-1", phase(corev1.PodRunning))
		until[policyv1.PodDisruptionBudget](ctx, s, x.Member(one), "db", enforced(2, 0))
		Expect(evict(ctx, s, x.Member(one), "db-0")).To(refused)
	}, SpecTimeout(storyTime))

	It("is reported if the member has its own budget, which stays unchanged", func(ctx SpecContext) {
		s := begin(ctx)
		member := x.Member(one)
		s.pod(ctx, "db-0", on(nodeOne), labelled)
		s.running(ctx, "db-0", nodeOne)
		own := func(name string) *policyv1.PodDisruptionBudget {
			b := &policyv1.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
				Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}},
			}
			Expect(member.API.Create(ctx, b)).To(Succeed())
			return b
		}
		same := own("db")
		budget(ctx, s, 1)
		s.noted(ctx, "PodDisruptionBudget", "db", v1alpha1.ReasonBudgetNotEnforced, `own PodDisruptionBudget "`+s.namespace+`/db"`, one, "ask the member's admin to delete that budget")
		still, err := read[policyv1.PodDisruptionBudget](ctx, s, member, "db")
		Expect(err).NotTo(HaveOccurred())
		Expect(still.UID).To(Equal(same.UID))
		Expect(still.Generation).To(Equal(same.Generation))
		Expect(member.API.Delete(ctx, still)).To(Succeed())
		until[policyv1.PodDisruptionBudget](ctx, s, member, "db", enforced(1, 0))

		By("creating a budget of the member's own for the same Pods, which would make their eviction impossible")
		second := own("mine")
		was := second.DeepCopy()
		second.Spec.Selector.MatchLabels["app"] = "db"
		Expect(member.API.Patch(ctx, second, client.MergeFrom(was))).To(Succeed())
		gone[policyv1.PodDisruptionBudget](ctx, s, member, "db")
		s.noted(ctx, "PodDisruptionBudget", "db", v1alpha1.ReasonBudgetNotEnforced, `"mine" for the same Pods`, one)
		Expect(member.API.Delete(ctx, second)).To(Succeed())
		until[policyv1.PodDisruptionBudget](ctx, s, member, "db", enforced(1, 0))
	}, SpecTimeout(storyTime))

	It("is not enforced, without other effects, by a member whose role is older, and the registration reports it", Serial, func(ctx SpecContext) {
		s := begin(ctx)
		member := x.Member(one)
		role := &rbacv1.ClusterRole{}
		Expect(member.API.Get(ctx, client.ObjectKey{Name: "xylem-member"}, role)).To(Succeed())
		older := role.DeepCopy()
		for i := range older.Rules {
			if older.Rules[i].Resources[0] == "poddisruptionbudgets" {
				older.Rules[i].Verbs = []string{"list"}
			}
		}
		Expect(older.Rules).NotTo(Equal(role.Rules))
		Expect(member.API.Update(ctx, older)).To(Succeed())
		Expect(x.Manager.Restart(ctx)).To(Succeed())
		reports := func(reason, message string) gomegatypes.GomegaMatcher {
			return HaveField("Status.Conditions", ContainElement(And(HaveField("Type", v1alpha1.ConditionSynced), HaveField("Status", metav1.ConditionTrue),
				HaveField("Reason", reason), HaveField("Message", ContainSubstring(message)))))
		}
		registration(ctx, one, reports(v1alpha1.ReasonBudgetNotEnforced, "Upgrade the chart xylem-member"))
		Expect(x.AwaitReady(ctx, one)).To(Succeed())
		budget(ctx, s, 1)
		s.pod(ctx, "db-0", on(nodeOne), labelled)
		s.running(ctx, "db-0", nodeOne)
		_, err := read[policyv1.PodDisruptionBudget](ctx, s, member, "db")
		Expect(err).To(Satisfy(apierrors.IsNotFound))

		By("upgrading the chart")
		older.Rules = role.Rules
		Expect(member.API.Update(ctx, older)).To(Succeed())
		until[policyv1.PodDisruptionBudget](ctx, s, member, "db", enforced(1, 0))
		registration(ctx, one, reports(v1alpha1.ReasonSynced, ""))
	}, SpecTimeout(storyTime))
})
