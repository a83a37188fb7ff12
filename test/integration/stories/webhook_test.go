package stories_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// hookRules is the message of the stories' webhooks.
const hookRules = "this violates the platform team's rules"

// leases is the resource of the fence.
const leases = "leases"

// webhook is an admission webhook that rejects the requests of one user for one namespace, for
// volumes that are bound to a claim in that namespace, and for Leases. It returns no status unless
// code is set.
type webhook struct {
	server          *httptest.Server
	config          *registrationv1.ValidatingWebhookConfiguration
	user, namespace string
	allows, hangs   atomic.Bool
	code            atomic.Int32
}

// guards starts a webhook for one kind of resource in a cluster, and waits until the API server calls
// it.
func (s *story) guards(ctx context.Context, c *harness.Cluster, user string, operation registrationv1.OperationType, resource string) *webhook {
	GinkgoHelper()
	w := &webhook{user: user, namespace: s.namespace}
	group := corev1.SchemeGroupVersion
	if resource == leases {
		group = coordinationv1.SchemeGroupVersion
	}
	w.server = httptest.NewTLSServer(http.HandlerFunc(w.review))
	DeferCleanup(w.server.Close)
	w.config = &registrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "story-" + s.namespace},
		Webhooks: []registrationv1.ValidatingWebhook{{
			Name:                    "rules.example.com",
			AdmissionReviewVersions: []string{"v1"},
			SideEffects:             ptr.To(registrationv1.SideEffectClassNone),
			TimeoutSeconds:          ptr.To[int32](30),
			ClientConfig: registrationv1.WebhookClientConfig{
				URL:      ptr.To(w.server.URL),
				CABundle: suite.CA(w.server),
			},
			// Otherwise, a webhook that does not respond would block the whole cluster.
			MatchConditions: []registrationv1.MatchCondition{{
				Name: "user", Expression: fmt.Sprintf("request.userInfo.username == %q || request.name == %q", user, s.namespace),
			}},
			Rules: []registrationv1.RuleWithOperations{
				suite.Rule(group.WithResource(resource), operation),
				suite.Rule(corev1.SchemeGroupVersion.WithResource("configmaps"), registrationv1.Create),
			},
		}},
	}
	inMember(ctx, c, w.config)
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: s.namespace}}
	Eventually(ctx, func(ctx context.Context) error {
		return c.API.Create(ctx, probe.DeepCopy(), client.DryRunAll)
	}).Should(MatchError(ContainSubstring(hookRules)))
	return w
}

func (w *webhook) review(rw http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	response := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: w.allows.Load() || !w.concerns(review.Request)}
	if !response.Allowed {
		response.Result = &metav1.Status{Message: hookRules, Code: w.code.Load()}
	}
	if !response.Allowed && w.hangs.Load() {
		<-r.Context().Done()
		return
	}
	review.Request, review.Response = nil, response
	_ = json.NewEncoder(rw).Encode(review) // the API server reports a truncated response
}

func (w *webhook) concerns(request *admissionv1.AdmissionRequest) bool {
	var object struct {
		Spec struct {
			ClaimRef struct {
				Namespace string `json:"namespace"`
			} `json:"claimRef"`
		} `json:"spec"`
	}
	_ = json.Unmarshal(request.Object.Raw, &object) // other kinds have no claimRef
	return w.namespace == request.Namespace || w.namespace == request.Name || w.namespace == object.Spec.ClaimRef.Namespace ||
		request.Resource.Resource == leases
}

var _ = Describe("A webhook that rejects what Xylem writes", func() {
	DescribeTable("in a member: the Pod or claim quotes the webhook, and goes on once the webhook allows the write",
		func(ctx SpecContext, code int32, operation registrationv1.OperationType, resource, kind, name, reason string) {
			s := begin(ctx)
			hook := s.guards(ctx, x.Member(one), harness.MemberUser, operation, resource)
			hook.code.Store(code)
			s.claim(ctx, "data")
			s.pod(ctx, "app", using("data"), on(nodeOne))
			s.noted(ctx, kind, name, reason, one, "rules.example.com", hookRules)
			hook.allows.Store(true)
			s.running(ctx, "app", nodeOne)
		},
		Entry("a Pod, without a status", SpecTimeout(storyTime), int32(0), registrationv1.Create, "pods", "Pod", "app", v1alpha1.ReasonRefusedByMember),
		Entry("a Pod, as a conflict", SpecTimeout(storyTime), int32(http.StatusConflict), registrationv1.Create, "pods", "Pod", "app", v1alpha1.ReasonRefusedByMember),
		Entry("a claim, without a status", SpecTimeout(storyTime), int32(0), registrationv1.Create, "persistentvolumeclaims", "PersistentVolumeClaim", "data", v1alpha1.ReasonRefusedByMember),
		Entry("a claim, as not found", SpecTimeout(storyTime), int32(http.StatusNotFound), registrationv1.Create, "persistentvolumeclaims", "PersistentVolumeClaim", "data", v1alpha1.ReasonRefusedByMember),
		Entry("a namespace", SpecTimeout(storyTime), int32(0), registrationv1.Create, "namespaces", "Pod", "app", v1alpha1.ReasonNamespaceRefused),
		Entry("a change to a volume", suite.Slow, SpecTimeout(storyTime), int32(http.StatusTooManyRequests), registrationv1.Update, "persistentvolumes", "PersistentVolumeClaim", "data", v1alpha1.ReasonRefusedByMember),
	)

	It("in a member: the deleted claim quotes the webhook, and its disk is destroyed once the webhook allows the deletion", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		volume := s.data(ctx)
		s.deletePod(ctx, "app")
		gone[corev1.Pod](ctx, s, x.Host, "app")
		hook := s.guards(ctx, x.Member(one), harness.MemberUser, registrationv1.Delete, "persistentvolumeclaims")
		hook.code.Store(http.StatusNotFound)
		s.deleteClaim(ctx, "data")
		s.noted(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonRefusedByMember, one, "delete PersistentVolumeClaim", hookRules)
		notedOn(ctx, "PersistentVolume", volume, v1alpha1.ReasonStuckDeletion, "webhook of the member")
		hook.allows.Store(true)
		Eventually(ctx, func() []string { return s.book(one, "data").LiveIDs() }).Should(BeEmpty())
	}, SpecTimeout(storyTime))

	DescribeTable("in a member: the claim moves to another member", func(ctx SpecContext, resource string) {
		s := begin(ctx)
		s.guards(ctx, x.Member(one), harness.MemberUser, registrationv1.Create, resource)
		s.claim(ctx, "data", ofClass(s.impatient(ctx)))
		s.pod(ctx, "app", using("data"), preferring(nodeOne))
		s.running(ctx, "app", nodeTwo)
		s.moved(ctx, "data")
		s.noted(ctx, "Pod", "app", v1alpha1.ReasonPlacementMoved, one, hookRules)
	},
		Entry("from one that rejects the claim", SpecTimeout(storyTime), "persistentvolumeclaims"),
		Entry("from one that rejects the namespace", SpecTimeout(storyTime), "namespaces"),
	)

	It("in a member: the claims and Pods in a rejected namespace report it until the webhook allows the namespace", func(ctx SpecContext) {
		s := begin(ctx)
		hook := s.guards(ctx, x.Member(one), harness.MemberUser, registrationv1.Create, "namespaces")
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.pod(ctx, "bare", on(nodeOne))
		rejected := tells(v1alpha1.ReasonNamespaceRefused, one, hookRules, "kubectl label namespace "+s.namespace)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", rejected)
		s.noted(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonNamespaceRefused, hookRules)
		until[corev1.Pod](ctx, s, x.Host, "bare", rejected)
		for kind, name := range map[string]string{"PersistentVolumeClaim": "data", "Pod": "app"} {
			s.why(ctx, kind, name, v1alpha1.ReasonNamespaceRefused, one, hookRules, "Ask the member's admin to allow the namespace")
		}

		hook.allows.Store(true)
		s.running(ctx, "app", nodeOne)
		s.running(ctx, "bare", nodeOne)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", suite.Unreported())
	}, SpecTimeout(storyTime))

	It("in a member: the registration quotes the webhook that rejects the fence's Lease, until the webhook allows it", func(ctx SpecContext) {
		s := begin(ctx)
		DeferCleanup(func(ctx SpecContext) { Expect(x.AwaitReady(ctx, one)).To(Succeed()) }, NodeTimeout(settle))
		hook := s.guards(ctx, x.Member(one), harness.MemberUser, registrationv1.Update, leases)
		registration(ctx, one, says(v1alpha1.ConditionConnected, metav1.ConditionFalse, v1alpha1.ReasonLeaseRejected,
			fmt.Sprintf("Lease %q", v1alpha1.DefaultNamespace+"/"+idOf(ctx, x.Host)), "rules.example.com", hookRules, fmt.Sprintf("exempt namespace %q", v1alpha1.DefaultNamespace)))
		hook.allows.Store(true)
		Expect(x.AwaitReady(ctx, one)).To(Succeed())
		s.barrier(ctx, nodeOne)
	}, SpecTimeout(storyTime))

	DescribeTable("in the host: the claim and its Pod quote the webhook, and go on once the webhook allows the write",
		func(ctx SpecContext, operation registrationv1.OperationType, resource string) {
			s := begin(ctx)
			hook := s.guards(ctx, x.Host, harness.HostUser, operation, resource)
			s.claim(ctx, "data")
			s.pod(ctx, "app", using("data"), on(nodeOne))
			s.noted(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonRefusedByHost, "the host", "rules.example.com", hookRules, "admin")
			s.noted(ctx, "Pod", "app", v1alpha1.ReasonRefusedByHost, `claim "data"`, hookRules)
			hook.allows.Store(true)
			s.running(ctx, "app", nodeOne)
		},
		Entry("a volume", SpecTimeout(storyTime), registrationv1.Create, "persistentvolumes"),
		Entry("a change to a claim", suite.Slow, SpecTimeout(storyTime), registrationv1.Update, "persistentvolumeclaims"),
	)

	It("in the host: the Pod quotes the webhook if the Pod's status is rejected", func(ctx SpecContext) {
		s := begin(ctx)
		hook := s.guards(ctx, x.Host, harness.HostUser, registrationv1.Update, "pods/status")
		s.pod(ctx, "app", on(nodeOne))
		s.noted(ctx, "Pod", "app", v1alpha1.ReasonRefusedByHost, "the status of Pod", hookRules)
		hook.allows.Store(true)
		s.running(ctx, "app", nodeOne)
	}, SpecTimeout(storyTime))
})

var _ = Describe("A webhook that does not respond", func() {
	It("is reported on the Pod, which runs once the webhook is gone", func(ctx SpecContext) {
		s := begin(ctx)
		hook := s.guards(ctx, x.Member(one), harness.MemberUser, registrationv1.Create, "pods")
		hook.server.Close()
		s.pod(ctx, "app", on(nodeOne))
		until[corev1.Pod](ctx, s, x.Host, "app", tells(v1alpha1.ReasonRefusedByMember, one, "rules.example.com", "webhook that does not respond"))
		Expect(x.Member(one).API.Delete(ctx, hook.config)).To(Succeed())
		s.running(ctx, "app", nodeOne)
	}, SpecTimeout(storyTime))

	It("is reported on the Pod if the member's API server waits for it", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		hook := s.guards(ctx, x.Member(one), harness.MemberUser, registrationv1.Create, "pods")
		hook.hangs.Store(true)
		s.pod(ctx, "app", on(nodeOne))
		s.noted(ctx, "Pod", "app", v1alpha1.ReasonRefusedByMember, one, "does not respond", "create Pod")
		hook.allows.Store(true)
		s.running(ctx, "app", nodeOne)
	}, SpecTimeout(2*storyTime))

	It("is reported on the claim and its Pod if the host's API server waits for it", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		hook := s.guards(ctx, x.Host, harness.HostUser, registrationv1.Create, "persistentvolumes")
		hook.hangs.Store(true)
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.noted(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonRefusedByHost, "does not respond", "create PersistentVolume")
		s.noted(ctx, "Pod", "app", v1alpha1.ReasonRefusedByHost, `claim "data"`)
		hook.allows.Store(true)
		s.running(ctx, "app", nodeOne)
	}, SpecTimeout(2*storyTime))
})
