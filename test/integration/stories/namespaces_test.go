package stories_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// teamLabel is the label that the registrations of these stories require. Each story has its own
// value.
const teamLabel = "example.com/team"

// admits limits members to namespaces with the story's label until the story ends. It returns when
// the controllers and the host's API server apply this rule.
func (s *story) admits(ctx context.Context, members ...string) {
	GinkgoHelper()
	for _, member := range members {
		rules(ctx, member, fmt.Sprintf(`{"matchLabels":{%q:%q}}`, teamLabel, s.namespace))
		DeferCleanup(admitsAll, member, NodeTimeout(settle))
	}
	other := newNamespace(ctx, "")
	DeferCleanup(dropped, other, NodeTimeout(settle))
	for _, member := range members {
		Eventually(ctx, func(ctx context.Context) (string, error) { return s.probe(ctx, other, member) }).Should(Equal(v1alpha1.ReasonNamespaceNotAdmitted))
		Eventually(ctx, func(ctx context.Context) error {
			pod := harness.Pod(other, "none") // the API server checks its policies before it looks for the Pod
			binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: "kosmos-" + member}}
			return x.Host.API.SubResource("binding").Create(ctx, pod, binding, client.DryRunAll)
		}).Should(MatchError(ContainSubstring("does not admit namespace")))
	}
}

func admitsAll(ctx SpecContext, member string) {
	rules(ctx, member, `{"allow":null,"deny":null,"matchLabels":null}`)
	registration(ctx, member, Not(HaveField("Status.Conditions", ContainElement(HaveField("Type", v1alpha1.ConditionNamespacesAdmitted)))))
}

func dropped(ctx SpecContext, namespace string) {
	Expect(x.Host.API.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
}

// probe creates a Pod in a namespace, and binds it to a member's node without the scheduler. It
// returns "" if Xylem pushes the Pod, and otherwise the reason why it does not.
func (*story) probe(ctx context.Context, namespace, member string) (string, error) {
	barriers++
	pod := harness.Pod(namespace, fmt.Sprintf("probe-%d", barriers))
	pod.Spec.NodeName = "kosmos-" + member
	if err := x.Host.API.Create(ctx, pod); err != nil {
		return "", err
	}
	defer func() { _ = x.Host.API.Delete(ctx, pod) }()
	var pushed *corev1.PodCondition
	if err := harness.Await(ctx, "the condition Pushed of "+pod.Name, func(ctx context.Context) error {
		err := x.Host.API.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		if pushed = podstatus.FindPodCondition(pod.Status.Conditions, v1alpha1.PodPushed); err == nil && pushed == nil {
			err = fmt.Errorf("the condition does not exist yet")
		}
		return err
	}); err != nil {
		return "", err
	}
	if pushed.Status == corev1.ConditionTrue {
		return "", nil
	}
	return pushed.Reason, nil
}

func rules(ctx context.Context, member, spec string) {
	GinkgoHelper()
	patch(ctx, x.Host, &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: member}}, fmt.Sprintf(`{"spec":{"namespaces":%s}}`, spec))
}

// label sets the label of the story's namespace to a JSON value, or removes it if the value is
// null.
func (s *story) label(ctx context.Context, value string) {
	GinkgoHelper()
	patch(ctx, x.Host, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, teamLabel, value))
}

func (s *story) labelled(ctx context.Context) {
	GinkgoHelper()
	s.label(ctx, fmt.Sprintf("%q", s.namespace))
}

func (s *story) unlabelled(ctx context.Context) {
	GinkgoHelper()
	s.label(ctx, "null")
}

// never expects that a member has no objects in the story's namespace.
func (s *story) never(ctx context.Context, member string) {
	GinkgoHelper()
	var claims corev1.PersistentVolumeClaimList
	Expect(x.Member(member).API.List(ctx, &claims, client.InNamespace(s.namespace))).To(Succeed())
	Expect(claims.Items).To(BeEmpty())
	var pods corev1.PodList
	Expect(x.Member(member).API.List(ctx, &pods, client.InNamespace(s.namespace))).To(Succeed())
	Expect(pods.Items).To(BeEmpty())
	gone[corev1.Namespace](ctx, s, x.Member(member), s.namespace)
}

// unbindable matches a Pod that the scheduler could not bind, with the given parts in the message.
func unbindable(parts ...string) OmegaMatcher {
	matchers := []OmegaMatcher{HaveField("Type", corev1.PodScheduled), HaveField("Status", corev1.ConditionFalse)}
	for _, part := range parts {
		matchers = append(matchers, HaveField("Message", ContainSubstring(part)))
	}
	return HaveField("Status.Conditions", ContainElement(And(matchers...)))
}

var _ = Describe("A namespace that a member does not admit", func() {
	It("gets its claim's disk in another member immediately, and Xylem pushes nothing to the first member", func(ctx SpecContext) {
		s := begin(ctx)
		s.admits(ctx, one)
		s.claim(ctx, "data", ofClass(s.waits(ctx, "1h")))
		s.pod(ctx, "app", using("data"), preferring(nodeOne))
		s.running(ctx, "app", nodeTwo)
		s.moved(ctx, "data")
		s.never(ctx, one)
		s.noted(ctx, "PersistentVolumeClaim", "data", "PlacementMoved", fmt.Sprintf("member %q does not admit namespace %q", one, s.namespace), teamLabel)
	}, SpecTimeout(storyTime))

	It("has its Pod rejected by the API server if the scheduler selects the member, and by Xylem if the Pod bypasses the scheduler", func(ctx SpecContext) {
		s := begin(ctx)
		s.admits(ctx, one)
		s.pod(ctx, "app", on(nodeOne))
		until[corev1.Pod](ctx, s, x.Host, "app", unbindable(fmt.Sprintf("member %q does not admit namespace %q", one, s.namespace), teamLabel+"="+s.namespace))
		Expect(s.probe(ctx, s.namespace, one)).To(Equal(v1alpha1.ReasonNamespaceNotAdmitted))
		s.never(ctx, one)

		s.labelled(ctx)
		s.running(ctx, "app", nodeOne)
	}, SpecTimeout(storyTime))

	It("gets no disk for a promise in that member", func(ctx SpecContext) {
		s := begin(ctx)
		s.admits(ctx, one)
		s.claim(ctx, "data", ofClass(classPromise))
		s.bound(ctx, "data")
		s.pod(ctx, "app", using("data"), preferring(nodeOne))
		until[corev1.Pod](ctx, s, x.Host, "app", unbindable("does not admit namespace"))
		s.why(ctx, "Pod", "app", v1alpha1.ReasonNamespaceNotAdmitted, "does not admit namespace", "spec.namespaces")
		s.never(ctx, one)

		s.labelled(ctx)
		s.running(ctx, "app", nodeOne)
	}, SpecTimeout(storyTime))

	It("keeps its Pod waiting until a member admits it, and the claim, the Pod and `why` report the reason", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.admits(ctx, one, two)
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", tells(v1alpha1.ReasonNamespaceNotAdmitted, "does not admit namespace", teamLabel, "ask an admin"))
		until[corev1.Pod](ctx, s, x.Host, "app", tells(v1alpha1.ReasonNamespaceNotAdmitted, "does not admit namespace"))
		s.why(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonNamespaceNotAdmitted, "does not admit namespace", "spec.namespaces")
		s.why(ctx, "Pod", "app", v1alpha1.ReasonNamespaceNotAdmitted, "does not admit namespace", "spec.namespaces")
		s.never(ctx, one)
		s.never(ctx, two)

		s.labelled(ctx)
		s.running(ctx, "app")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", And(phase(corev1.ClaimBound), suite.Unreported()))
	}, SpecTimeout(storyTime))

	It("keeps its objects in the member when it loses the label, but gets no new ones", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.labelled(ctx)
		s.admits(ctx, one)
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.running(ctx, "app", nodeOne)
		s.bound(ctx, "data")
		leaf := until[corev1.Pod](ctx, s, x.Member(one), "app", Not(BeNil()))
		registration(ctx, one, says(v1alpha1.ConditionNamespacesAdmitted, metav1.ConditionTrue, v1alpha1.ReasonNamespacesAdmitted))

		s.unlabelled(ctx)
		registration(ctx, one, says(v1alpha1.ConditionNamespacesAdmitted, metav1.ConditionFalse, v1alpha1.ReasonNamespacesNotAdmitted, fmt.Sprintf("%q (1 claim, 1 Pod)", s.namespace)))
		for series, value := range map[string]string{
			fmt.Sprintf(`xylem_objects_not_admitted{cluster=%q,kind="PersistentVolumeClaim"}`, one): "1",
			fmt.Sprintf(`xylem_objects_not_admitted{cluster=%q,kind="Pod"}`, one):                   "1",
			fmt.Sprintf(`xylem_namespaces_admitted{cluster=%q}`, one):                               "0",
		} {
			Expect(metric(ctx, series)).To(Equal(value), series)
		}
		s.pod(ctx, "late", using("data"), tolerant)
		until[corev1.Pod](ctx, s, x.Host, "late", unbindable("does not admit namespace"))
		s.claim(ctx, "other")
		s.pod(ctx, "other", using("other"), preferring(nodeOne))
		s.running(ctx, "other", nodeTwo)
		s.moved(ctx, "other")
		Expect(s.running(ctx, "app", nodeOne).UID).NotTo(BeEmpty())
		Expect(until[corev1.Pod](ctx, s, x.Member(one), "app", phase(corev1.PodRunning)).UID).To(Equal(leaf.UID))
		Expect(s.book(one, "data").LiveIDs()).To(HaveLen(1))

		By("deleting its objects in the member, which is still possible")
		s.deletePod(ctx, "late")
		s.deletePod(ctx, "app")
		s.deleteClaim(ctx, "data")
		Eventually(func() []string { return s.book(one, "data").LiveIDs() }).Should(BeEmpty())
		registration(ctx, one, Or(says(v1alpha1.ConditionNamespacesAdmitted, metav1.ConditionTrue, v1alpha1.ReasonNamespacesAdmitted),
			says(v1alpha1.ConditionNamespacesAdmitted, metav1.ConditionFalse, v1alpha1.ReasonNoNamespaceAdmitted)))
	}, SpecTimeout(storyTime))

	It("gets the volume that was being provisioned when it lost the label", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.labelled(ctx)
		s.admits(ctx, one)
		s.faulty(one, codes.DeadlineExceeded, "still at it", "data")
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), preferring(nodeOne))
		leaf := until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data", phase(corev1.ClaimPending))
		until[corev1.Pod](ctx, s, x.Member(one), "app", Not(BeNil()))

		s.unlabelled(ctx)
		registration(ctx, one, says(v1alpha1.ConditionNamespacesAdmitted, metav1.ConditionFalse, v1alpha1.ReasonNamespacesNotAdmitted, fmt.Sprintf("%q (1 claim, 0 Pods)", s.namespace)))
		s.repaired(one)
		s.bound(ctx, "data")
		Expect(until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data", phase(corev1.ClaimBound)).UID).To(Equal(leaf.UID))
		until[corev1.Pod](ctx, s, x.Host, "app", unbindable("does not admit namespace"))
		s.why(ctx, "Pod", "app", v1alpha1.ReasonNamespaceNotAdmitted, "does not admit namespace", teamLabel)

		s.labelled(ctx)
		s.running(ctx, "app", nodeOne)
	}, SpecTimeout(storyTime))
})

var _ = Describe("The rules for namespaces of a registration", func() {
	It("are reported if they admit no namespace, or if their list of denied namespaces lifts the default one", func(ctx SpecContext) {
		s := begin(ctx)
		s.admits(ctx, two)
		registration(ctx, two, says(v1alpha1.ConditionNamespacesAdmitted, metav1.ConditionFalse, v1alpha1.ReasonNoNamespaceAdmitted, "admits none of the host's"))
		s.labelled(ctx)
		registration(ctx, two, says(v1alpha1.ConditionNamespacesAdmitted, metav1.ConditionTrue, v1alpha1.ReasonNamespacesAdmitted, "admits 1 of the host's"))
		rules(ctx, two, `{"deny":[],"matchLabels":null}`)
		registration(ctx, two, says(v1alpha1.ConditionNamespacesAdmitted, metav1.ConditionTrue, v1alpha1.ReasonNamespacesAdmitted, "also accepts namespaces that match *-system, openshift*"))
	}, SpecTimeout(storyTime))

	It("are all quoted by the Pod and by `why` if each member excludes the namespace for a different reason", func(ctx SpecContext) {
		s := begin(ctx)
		rules(ctx, two, `{"allow":["other-*"]}`)
		DeferCleanup(admitsAll, two, NodeTimeout(settle))
		s.admits(ctx, one)
		Eventually(ctx, func(ctx context.Context) (string, error) { return s.probe(ctx, s.namespace, two) }).Should(Equal(v1alpha1.ReasonNamespaceNotAdmitted))
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"))
		each := []string{
			fmt.Sprintf("member %q does not admit namespace %q: the namespace lacks the label %s=%s", one, s.namespace, teamLabel, s.namespace),
			fmt.Sprintf("member %q does not admit namespace %q: no pattern of spec.namespaces.allow matches the name", two, s.namespace),
		}
		until[corev1.Pod](ctx, s, x.Host, "app", tells(v1alpha1.ReasonNamespaceNotAdmitted, each...))
		s.why(ctx, "Pod", "app", v1alpha1.ReasonNamespaceNotAdmitted, each...)
		s.why(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonNamespaceNotAdmitted, each...)
		s.never(ctx, one)
		s.never(ctx, two)
	}, SpecTimeout(storyTime))

	It("prevent the scheduler from selecting the member if config/steering is applied", func(ctx SpecContext) {
		suite.From(x.Host, "1.36", "it serves no MutatingAdmissionPolicies")
		_, err := x.Kubectl(ctx, x.Fleet.Host, "apply", "--server-side", "-k", x.Root("config", "steering"))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			_, err := x.Kubectl(ctx, x.Fleet.Host, "delete", "-k", x.Root("config", "steering"))
			Expect(err).NotTo(HaveOccurred())
		}, NodeTimeout(settle))
		s := begin(ctx)
		s.admits(ctx, one)
		Eventually(ctx, func(ctx context.Context) (*corev1.NodeAffinity, error) {
			pod := s.newPod("steered")
			err := x.Host.API.Create(ctx, pod, client.DryRunAll)
			if err != nil || pod.Spec.Affinity == nil {
				return nil, err
			}
			return pod.Spec.Affinity.NodeAffinity, nil
		}).ShouldNot(BeNil())
		s.pod(ctx, "app", preferring(nodeOne), func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{v1alpha1.LabelVirtualNode: "true"} })
		s.running(ctx, "app", nodeTwo)
		s.pod(ctx, "pinned", on(nodeOne))
		until[corev1.Pod](ctx, s, x.Host, "pinned", unbindable("didn't match Pod's node affinity/selector"))
	}, SpecTimeout(storyTime))
})

var _ = Describe("The team sample", func() {
	It("runs in the member that admits it, within its quota of each class", func(ctx SpecContext) {
		s := sample(ctx, "team.yaml", one)
		s.bound(ctx, "ledger")
		s.running(ctx, "ledger", nodeOne)
		for _, claim := range []*corev1.PersistentVolumeClaim{s.newClaim("large", ofClass(classMirror), ofSize("5Gi")), s.newClaim("archived", ofClass("archive"))} {
			Eventually(ctx, func(ctx context.Context) error { return x.Host.API.Create(ctx, claim, client.DryRunAll) }).Should(MatchError(ContainSubstring("exceeded quota: storage")))
		}
	}, SpecTimeout(storyTime))
})
