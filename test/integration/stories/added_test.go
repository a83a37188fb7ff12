package stories_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// adds creates a policy in a member that changes the story's Pods when they are created, as queues and
// service meshes do, and waits until the policy takes effect. change is a JSONPatch in CEL.
func (s *story) adds(ctx context.Context, member *harness.Cluster, change string) {
	GinkgoHelper()
	meta := metav1.ObjectMeta{Name: "adds-" + s.namespace}
	inMember(ctx, member, &admissionv1.MutatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.MutatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
			RuleWithOperations: suite.Rule(corev1.SchemeGroupVersion.WithResource("pods"), admissionv1.Create),
		}}},
		MatchConditions:    []admissionv1.MatchCondition{{Name: "story", Expression: fmt.Sprintf("request.namespace == %q || request.name == %q", s.namespace, s.namespace)}},
		ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
		Mutations: []admissionv1.Mutation{{
			PatchType: admissionv1.PatchTypeJSONPatch, JSONPatch: &admissionv1.JSONPatch{Expression: "[" + change + "]"},
		}},
	}})
	inMember(ctx, member, &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: meta.Name}})
	Eventually(ctx, func(ctx context.Context) (int, error) {
		probe := s.newPod(s.namespace)
		probe.Namespace = metav1.NamespaceDefault
		err := member.API.Create(ctx, probe, client.DryRunAll)
		return len(probe.Spec.SchedulingGates) + len(probe.Spec.Containers), err
	}).Should(Equal(2), "the policy does not take effect")
}

var _ = Describe("What a program in a member adds to a Pod", func() {
	leaf := func(s *story, name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	}

	It("is reported if it is a scheduling gate, for Pods with and without a claim, and they run once it is removed", func(ctx SpecContext) {
		s := begin(ctx)
		s.adds(ctx, x.Member(one), `JSONPatch{op: "add", path: "/spec/schedulingGates", value: [Object.spec.schedulingGates{name: "queue.example.com/wait"}]}`)
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.pod(ctx, "bare", on(nodeOne))
		for _, name := range []string{"app", "bare"} {
			s.noted(ctx, "Pod", name, v1alpha1.ReasonLeafPodGated, one, "queue.example.com/wait")
			s.why(ctx, "pod", name, v1alpha1.ReasonLeafPodGated, "queue.example.com/wait")
			remove := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"schedulingGates":null}}`))
			Expect(x.Member(one).API.Patch(ctx, leaf(s, name), remove)).To(Succeed())
			s.running(ctx, name, nodeOne)
		}
	}, SpecTimeout(storyTime))

	It("is reported if it is a container that keeps a finished Pod running", func(ctx SpecContext) {
		s := begin(ctx)
		s.adds(ctx, x.Member(one), `JSONPatch{op: "add", path: "/spec/containers/-", value: Object.spec.containers{name: "proxy", image: "example/proxy:1"}}`)
		s.pod(ctx, "job", on(nodeOne), func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure })
		s.running(ctx, "job", nodeOne)
		running := until[corev1.Pod](ctx, s, x.Member(one), "job", HaveField("Status.ContainerStatuses", HaveLen(2)))
		finish := func(added bool) {
			for i := range running.Status.ContainerStatuses {
				if c := &running.Status.ContainerStatuses[i]; (c.Name == "proxy") == added {
					c.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}
				}
			}
			Expect(x.Member(one).API.Status().Update(ctx, running)).To(Succeed())
		}
		finish(false)
		s.noted(ctx, "Pod", "job", v1alpha1.ReasonContainersAdded, one, `"proxy"`)
		running.Status.Phase = corev1.PodSucceeded
		finish(true)
		until[corev1.Pod](ctx, s, x.Host, "job", phase(corev1.PodSucceeded))
	}, SpecTimeout(storyTime))
})
