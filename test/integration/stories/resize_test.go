package stories_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// resizeResult is the annotation that determines what the simulated kubelet does with a resize.
const resizeResult = "controlplane.xylem.io/resize"

// amounts returns requests of CPU and memory, and limits of twice as much.
func amounts(cpu, memory string) corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)},
		Limits:   corev1.ResourceList{},
	}
	for name, amount := range r.Requests {
		amount.Mul(2)
		r.Limits[name] = amount
	}
	return r
}

// sized makes a Pod request resources, in its container and in a sidecar.
func sized(cpu, memory string) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources = amounts(cpu, memory)
		p.Spec.InitContainers = []corev1.Container{{
			Name: "sidecar", Image: "example/sidecar", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways), Resources: amounts(cpu, memory),
		}}
	}
}

// resize resizes a container of a Pod in a cluster, as `kubectl patch --subresource resize` does.
func (s *story) resize(ctx context.Context, c *harness.Cluster, pod, list, container, cpu, memory string) {
	GinkgoHelper()
	body, err := json.Marshal(map[string]any{"spec": map[string]any{list: []any{map[string]any{"name": container, "resources": amounts(cpu, memory)}}}})
	Expect(err).NotTo(HaveOccurred())
	Expect(c.API.SubResource("resize").Patch(ctx, s.newPod(pod), client.RawPatch(types.StrategicMergePatchType, body))).To(Succeed())
}

// requests matches a Pod whose main container requests these amounts.
func requests(cpu, memory string) gomegatypes.GomegaMatcher {
	return WithTransform(func(p *corev1.Pod) string { return describeRequirements(p.Spec.Containers[0].Resources) }, Equal(describeRequirements(amounts(cpu, memory))))
}

// actuated matches a Pod whose latest generation was observed, and whose main container has these amounts.
func actuated(cpu, memory string) gomegatypes.GomegaMatcher {
	want := describeRequirements(amounts(cpu, memory))
	return WithTransform(func(p *corev1.Pod) []string {
		statuses := p.Status.ContainerStatuses
		if len(statuses) == 0 || statuses[0].Resources == nil || p.Status.ObservedGeneration != p.Generation {
			return nil
		}
		allocated := corev1.ResourceRequirements{Requests: statuses[0].AllocatedResources, Limits: statuses[0].Resources.Limits}
		return []string{describeRequirements(*statuses[0].Resources), describeRequirements(allocated)}
	}, Equal([]string{want, want}))
}

func describeRequirements(r corev1.ResourceRequirements) string {
	return fmt.Sprintf("requests %s %s, limits %s %s", r.Requests.Cpu(), r.Requests.Memory(), r.Limits.Cpu(), r.Limits.Memory())
}

// pendingResize matches a Pod with a pending resize of its latest generation.
func pendingResize(reason string) gomegatypes.GomegaMatcher {
	return WithTransform(func(p *corev1.Pod) []string {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodResizePending && c.Status == corev1.ConditionTrue && c.ObservedGeneration == p.Generation {
				return []string{c.Reason, c.Message}
			}
		}
		return nil
	}, Equal([]string{reason, "Node didn't have enough resource: cpu"}))
}

// withoutResizeCondition matches a Pod without a resize that is pending or in progress.
func withoutResizeCondition() gomegatypes.GomegaMatcher {
	return HaveField("Status.Conditions", Not(ContainElement(HaveField("Type", Or(Equal(corev1.PodResizePending), Equal(corev1.PodResizeInProgress))))))
}

var _ = Describe("A Pod that is resized", func() {
	// resizable returns a story with a running Pod.
	resizable := func(ctx SpecContext, options ...podOption) *story {
		GinkgoHelper()
		s := begin(ctx)
		s.pod(ctx, "app", append(options, on(nodeOne), sized("10m", "16Mi"))...)
		s.running(ctx, "app", nodeOne)
		until[corev1.Pod](ctx, s, x.Host, "app", actuated("10m", "16Mi"))
		return s
	}

	It("gets its new resources in the member, without a restart, and shows them", func(ctx SpecContext) {
		s := resizable(ctx)
		leaf, err := read[corev1.Pod](ctx, s, x.Member(one), "app")
		Expect(err).NotTo(HaveOccurred())
		for _, size := range [][2]string{{"20m", "32Mi"}, {"5m", "8Mi"}} {
			By("resizing it to " + size[0])
			books := opened(ctx)
			s.resize(ctx, x.Host, "app", "containers", "main", size[0], size[1])
			shown := until[corev1.Pod](ctx, s, x.Host, "app", And(actuated(size[0], size[1]), withoutResizeCondition()))
			Expect(shown.Status.ContainerStatuses[0].RestartCount).To(BeZero())
			is, err := read[corev1.Pod](ctx, s, x.Member(one), "app")
			Expect(err).NotTo(HaveOccurred())
			Expect(is.UID).To(Equal(leaf.UID))
			Expect(is).To(requests(size[0], size[1]))
			Expect(is.Spec.InitContainers).To(Equal(leaf.Spec.InitContainers))
			if spent := books.spent(ctx, s, x.Member(one)); !harness.Restarted(spent) {
				Expect(spent).To(HaveKeyWithValue("member patch pods/resize", 1), "%v", spent)
				Expect(spent["member patch pods"]).To(BeNumerically("<=", 2), "the record, again if the kubelet was faster: %v", spent)
				Expect(spent["host patch pods/status"]).To(BeNumerically("<=", 2), "%v", spent)
			}
		}
		By("resizing its sidecar")
		s.resize(ctx, x.Host, "app", "initContainers", "sidecar", "30m", "16Mi")
		until[corev1.Pod](ctx, s, x.Host, "app", WithTransform(func(p *corev1.Pod) string {
			return describeRequirements(*p.Status.InitContainerStatuses[0].Resources)
		}, Equal(describeRequirements(amounts("30m", "16Mi")))))

		By("resizing the Pod in the member, which belongs to the member's admin, once Xylem has recorded its own resizes")
		until[corev1.Pod](ctx, s, x.Member(one), "app", HaveField("Annotations", HaveKeyWithValue(v1alpha1.AnnotationPushed,
			And(ContainSubstring(`"main/requests/cpu":"5m"`), ContainSubstring(`"sidecar/requests/cpu":"30m"`)))))
		s.resize(ctx, x.Member(one), "app", "containers", "main", "7m", "8Mi")
		until[corev1.Pod](ctx, s, x.Member(one), "app", actuated("7m", "8Mi"))
		s.barrier(ctx, nodeOne)
		is, err := read[corev1.Pod](ctx, s, x.Member(one), "app")
		Expect(err).NotTo(HaveOccurred())
		Expect(is).To(requests("7m", "8Mi"))
		s.unwarned(ctx, x.Host, x.Member(one))
	}, SpecTimeout(storyTime))

	It("shows that its node cannot hold the resize, and gets it once the node can", func(ctx SpecContext) {
		s := resizable(ctx)
		for reason, toDo := range map[string]string{corev1.PodReasonDeferred: "Wait until the Pod's node", corev1.PodReasonInfeasible: "re-create the Pod"} {
			patch(ctx, x.Host, s.newPod("app"), fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, resizeResult, reason))
			until[corev1.Pod](ctx, s, x.Member(one), "app", HaveField("Annotations", HaveKeyWithValue(resizeResult, reason)))
			s.resize(ctx, x.Host, "app", "containers", "main", "40m", "16Mi")
			shown := until[corev1.Pod](ctx, s, x.Host, "app", pendingResize(reason))
			Expect(describeRequirements(*shown.Status.ContainerStatuses[0].Resources)).To(Equal(describeRequirements(amounts("10m", "16Mi"))))
			Expect(shown.Status.ObservedGeneration).To(Equal(shown.Generation))
			s.why(ctx, "Pod", "app", reason, "runs, but has a problem", toDo)
			s.resize(ctx, x.Host, "app", "containers", "main", "10m", "16Mi")
		}
		By("shrinking it, which takes the member a while: the host counts its earlier resources")
		patch(ctx, x.Host, s.newPod("app"), fmt.Sprintf(`{"metadata":{"annotations":{%q:"InProgress"}}}`, resizeResult))
		until[corev1.Pod](ctx, s, x.Member(one), "app", HaveField("Annotations", HaveKeyWithValue(resizeResult, "InProgress")))
		s.resize(ctx, x.Host, "app", "containers", "main", "5m", "16Mi")
		shown := until[corev1.Pod](ctx, s, x.Host, "app", And(requests("5m", "16Mi"), isTrue(corev1.PodResizeInProgress),
			WithTransform(func(p *corev1.Pod) int64 { return p.Generation - p.Status.ObservedGeneration }, BeZero())))
		Expect(describeRequirements(*shown.Status.ContainerStatuses[0].Resources)).To(Equal(describeRequirements(amounts("10m", "16Mi"))))

		patch(ctx, x.Host, s.newPod("app"), fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, resizeResult))
		until[corev1.Pod](ctx, s, x.Host, "app", And(actuated("5m", "16Mi"), withoutResizeCondition()))
	}, SpecTimeout(storyTime))

	It("reports that a LimitRange of the member rejects the resize, and gets it once the member allows it", func(ctx SpecContext) {
		s := resizable(ctx)
		limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "small"}, Spec: corev1.LimitRangeSpec{
			Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m")}}},
		}}
		inMember(ctx, x.Member(one), limits)
		s.resize(ctx, x.Host, "app", "containers", "main", "40m", "16Mi")
		s.noted(ctx, "Pod", "app", v1alpha1.ReasonNotResized, one, "its earlier resources", "maximum cpu usage per Container is 50m", "LimitRange")
		is, err := read[corev1.Pod](ctx, s, x.Host, "app")
		Expect(err).NotTo(HaveOccurred())
		Expect(is.Status.ObservedGeneration).To(BeNumerically("<", is.Generation))
		Expect(is).To(isTrue(v1alpha1.PodPushed))
		s.why(ctx, "Pod", "app", v1alpha1.ReasonNotResized, "runs, but has a problem", "ask the member's admin")

		By("checking that another change reaches the leaf")
		patch(ctx, x.Host, is, `{"metadata":{"labels":{"tier":"front"}}}`)
		until[corev1.Pod](ctx, s, x.Member(one), "app", And(requests("10m", "16Mi"), HaveField("Labels", HaveKeyWithValue("tier", "front"))))

		Expect(x.Member(one).API.Delete(ctx, limits)).To(Succeed())
		until[corev1.Pod](ctx, s, x.Host, "app", actuated("40m", "16Mi"))
	}, SpecTimeout(storyTime))

	It("is resized once, if a webhook of the member changes the resize", func(ctx SpecContext) {
		s := resizable(ctx)
		s.altersResizes(ctx, x.Member(one), "20m")
		s.resize(ctx, x.Host, "app", "containers", "main", "40m", "16Mi")
		s.noted(ctx, "Pod", "app", v1alpha1.ReasonNotResized, one, `container "main": requests.cpu 20m instead of 40m`, "webhook")
		until[corev1.Pod](ctx, s, x.Host, "app", WithTransform(func(p *corev1.Pod) bool {
			return p.Status.ObservedGeneration == p.Generation && p.Status.ContainerStatuses[0].Resources.Requests.Cpu().String() == "20m"
		}, BeTrue()))
		books := opened(ctx)
		s.barrier(ctx, nodeOne)
		Expect(books.spent(ctx, s, x.Member(one))).NotTo(HaveKey("member patch pods/resize"))
	}, SpecTimeout(storyTime))

	It("reports that an earlier role of the member does not allow the resize", func(ctx SpecContext) {
		s := resizable(ctx)
		role := &rbacv1.ClusterRole{}
		Expect(x.Member(one).API.Get(ctx, client.ObjectKey{Name: "xylem-member"}, role)).To(Succeed())
		all := slices.Clone(role.Rules)
		role.Rules = slices.DeleteFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "pods/resize") })
		Expect(len(role.Rules)).To(BeNumerically("<", len(all)))
		Expect(x.Member(one).API.Update(ctx, role)).To(Succeed())
		restore := func(ctx SpecContext) {
			Expect(x.Member(one).API.Get(ctx, client.ObjectKeyFromObject(role), role)).To(Succeed())
			role.Rules = all
			Expect(x.Member(one).API.Update(ctx, role)).To(Succeed())
		}
		DeferCleanup(restore)
		s.resize(ctx, x.Host, "app", "containers", "main", "40m", "16Mi")
		s.noted(ctx, "Pod", "app", v1alpha1.ReasonNotResized, one, "pods/resize", "upgrade the chart xylem-member")
		s.barrier(ctx, nodeOne) // nothing else changes
		restore(ctx)
		until[corev1.Pod](ctx, s, x.Host, "app", actuated("40m", "16Mi"))
	}, SpecTimeout(storyTime))

	It("gets new resources for itself, if all nodes of its member declare the feature", func(ctx SpecContext) {
		if suite.Versioned() {
			Skip("Nodes declare features from Kubernetes 1.36 on")
		}
		s := resizable(ctx, func(p *corev1.Pod) {
			whole := amounts("50m", "64Mi")
			p.Spec.Resources = &whole
		})
		resize := func(ctx context.Context) error {
			return x.Host.API.SubResource("resize").Patch(ctx, s.newPod("app"), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"resources":{"requests":{"cpu":"60m"}}}}`)))
		}
		Expect(resize(ctx)).To(MatchError(ContainSubstring("InPlacePodLevelResourcesVerticalScaling")))
		declare := func(ctx SpecContext, features string) {
			var nodes corev1.NodeList
			Expect(x.Member(one).API.List(ctx, &nodes)).To(Succeed())
			Expect(nodes.Items).NotTo(BeEmpty())
			for i := range nodes.Items {
				Expect(x.Member(one).API.Status().Patch(ctx, &nodes.Items[i], client.RawPatch(types.MergePatchType, []byte(`{"status":{"declaredFeatures":`+features+`}}`)))).To(Succeed())
			}
		}
		declare(ctx, `["InPlacePodLevelResourcesVerticalScaling"]`)
		DeferCleanup(declare, "null")
		until[corev1.Node](ctx, s, x.Host, nodeOne, HaveField("Status.DeclaredFeatures", ConsistOf("InPlacePodLevelResourcesVerticalScaling")))
		Eventually(ctx, resize).Should(Succeed())
		until[corev1.Pod](ctx, s, x.Member(one), "app", WithTransform(func(p *corev1.Pod) string { return p.Spec.Resources.Requests.Cpu().String() }, Equal("60m")))
		until[corev1.Pod](ctx, s, x.Host, "app", And(actuated("10m", "16Mi"), WithTransform(func(p *corev1.Pod) string {
			return p.Status.AllocatedResources.Cpu().String()
		}, Equal("60m"))))
		s.unwarned(ctx, x.Host, x.Member(one))
	}, SpecTimeout(storyTime))

	It("is resized after the manager starts again, and before its leaf exists", func(ctx SpecContext) {
		s := resizable(ctx)
		Expect(x.Manager.Stop()).To(Succeed())
		DeferCleanup(x.Manager.Start)
		s.resize(ctx, x.Host, "app", "containers", "main", "20m", "16Mi")
		s.pod(ctx, "late", on(nodeOne), sized("10m", "16Mi"))
		until[corev1.Pod](ctx, s, x.Host, "late", HaveField("Spec.NodeName", nodeOne))
		s.resize(ctx, x.Host, "late", "containers", "main", "20m", "16Mi")
		Expect(x.Manager.Start(ctx)).To(Succeed())
		for _, name := range []string{"app", "late"} {
			until[corev1.Pod](ctx, s, x.Host, name, actuated("20m", "16Mi"))
		}
	}, SpecTimeout(storyTime))
})

// altersResizes starts a webhook in a member that sets the CPU request of each resize in the story's namespace.
func (s *story) altersResizes(ctx context.Context, c *harness.Cluster, cpu string) {
	GinkgoHelper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{
			UID: review.Request.UID, Allowed: true, PatchType: ptr.To(admissionv1.PatchTypeJSONPatch),
			Patch: fmt.Appendf(nil, `[{"op":"replace","path":"/spec/containers/0/resources/requests/cpu","value":%q}]`, cpu),
		}
		review.Request = nil
		_ = json.NewEncoder(rw).Encode(review) // the API server reports a truncated response
	}))
	DeferCleanup(server.Close)
	inMember(ctx, c, &registrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "story-" + s.namespace},
		Webhooks: []registrationv1.MutatingWebhook{{
			Name: "resizes.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(registrationv1.SideEffectClassNone),
			ClientConfig:      registrationv1.WebhookClientConfig{URL: ptr.To(server.URL), CABundle: suite.CA(server)},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.namespace}},
			Rules:             []registrationv1.RuleWithOperations{suite.Rule(corev1.SchemeGroupVersion.WithResource("pods/resize"), registrationv1.Update)},
		}},
	})
	// The API server begins to call the webhook.
	probe, err := read[corev1.Pod](ctx, s, c, "app")
	Expect(err).NotTo(HaveOccurred())
	Eventually(ctx, func(ctx context.Context) (string, error) {
		dry := probe.DeepCopy()
		body := []byte(`{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"11m"}}}]}}`)
		err := c.API.SubResource("resize").Patch(ctx, dry, client.RawPatch(types.StrategicMergePatchType, body), client.DryRunAll)
		return dry.Spec.Containers[0].Resources.Requests.Cpu().String(), err
	}).Should(Equal(cpu))
}
