package stories_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// service creates a Service in the host that selects the Pods labelled app=<name>.
func (s *story) service(ctx context.Context, name string, change ...func(*corev1.Service)) *corev1.Service {
	GinkgoHelper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	service.Spec = corev1.ServiceSpec{Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Name: "db", Port: 5432}}}
	for _, f := range change {
		f(service)
	}
	inHost(ctx, service)
	return service
}

func headless(service *corev1.Service) {
	service.Spec.ClusterIP = corev1.ClusterIPNone
	service.Spec.PublishNotReadyAddresses = true
}

// ofApp labels a Pod with its app, and gives it a host name below a Service.
func ofApp(name, hostname string) podOption {
	return func(p *corev1.Pod) {
		p.Labels = map[string]string{"app": name}
		p.Spec.Hostname, p.Spec.Subdomain = hostname, name
	}
}

// endpoints waits until the EndpointSlices of a Service match that a manager keeps in a member.
func (s *story) endpoints(ctx context.Context, m *harness.Cluster, service, manager string, match gomegatypes.GomegaMatcher) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		var list discoveryv1.EndpointSliceList
		g.Expect(m.API.List(ctx, &list, client.InNamespace(s.namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: manager})).To(Succeed())
		var found []discoveryv1.Endpoint
		for i := range list.Items {
			found = append(found, list.Items[i].Endpoints...)
		}
		g.Expect(found).To(match)
	}).Should(Succeed())
}

// ownController is the manager of the EndpointSlices that the member's own controller manager keeps.
const ownController = "endpointslice-controller.k8s.io"

var _ = Describe("A Service of a namespace with Pods in a member", func() {
	It("exists there with the same name, and the member's own controllers find its Pods", func(ctx SpecContext) {
		s := begin(ctx)
		member := x.Member(one)
		db := s.service(ctx, "db", headless)
		web := s.service(ctx, "web", func(service *corev1.Service) {
			service.Spec.Type = corev1.ServiceTypeLoadBalancer
			service.Annotations = map[string]string{"external-dns.alpha.kubernetes.io/hostname": "www.example.com"}
		})
		s.service(ctx, "private", func(service *corev1.Service) {
			service.Annotations = map[string]string{v1alpha1.AnnotationReflect: "false"}
		})
		s.service(ctx, "elsewhere", func(service *corev1.Service) {
			service.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"}
		})
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "db"}}
		set.Spec = appsv1.StatefulSetSpec{
			ServiceName: "db", Replicas: new(int32(2)), PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "db"}}, Spec: s.newPod("any", boundTo(nodeOne)).Spec},
		}
		inHost(ctx, set)
		s.endpoints(ctx, member, "db", ownController, ConsistOf(HaveField("Hostname", HaveValue(Equal("db-0"))), HaveField("Hostname", HaveValue(Equal("db-1")))))
		leaf := until[corev1.Service](ctx, s, member, "db", HaveField("Spec.ClusterIP", corev1.ClusterIPNone))
		Expect(leaf.Spec.PublishNotReadyAddresses).To(BeTrue())
		Expect(leaf.Annotations).To(Equal(map[string]string{v1alpha1.AnnotationRoot: s.namespace + "/db", v1alpha1.AnnotationRootUID: string(db.UID)}))
		leaf = until[corev1.Service](ctx, s, member, "web", HaveField("Spec.Type", corev1.ServiceTypeClusterIP))
		Expect(leaf.Spec.ClusterIP).NotTo(BeEmpty())
		Expect(leaf.Spec.Ports).To(ConsistOf(HaveField("NodePort", BeZero())))
		Expect(leaf.Annotations).NotTo(HaveKey(ContainSubstring("external-dns")))
		s.noted(ctx, "Service", "elsewhere", v1alpha1.ReasonEndpointsInMember, one, "spec.externalName")
		gone[corev1.Service](ctx, s, member, "private")
		gone[corev1.Service](ctx, s, member, "elsewhere")

		By("changing it: the member's address stays")
		patch(ctx, x.Host, web, `{"spec":{"ports":[{"name":"db","port":5433,"protocol":"TCP","targetPort":5432}],"selector":{"app":"db"}}}`)
		until[corev1.Service](ctx, s, member, "web", And(HaveField("Spec.Ports", ConsistOf(HaveField("Port", BeEquivalentTo(5433)))), HaveField("Spec.ClusterIP", leaf.Spec.ClusterIP)))
		s.endpoints(ctx, member, "web", ownController, HaveLen(2))

		By("deleting, excluding and changing it in the member")
		patch(ctx, x.Host, web, `{"metadata":{"annotations":{"`+v1alpha1.AnnotationReflect+`":"false"}}}`)
		gone[corev1.Service](ctx, s, member, "web")
		patch(ctx, member, leafOf(s, "db"), `{"spec":{"publishNotReadyAddresses":false}}`)
		until[corev1.Service](ctx, s, member, "db", HaveField("Spec.PublishNotReadyAddresses", BeTrue()))
		Expect(x.Host.API.Delete(ctx, db)).To(Succeed())
		gone[corev1.Service](ctx, s, member, "db")
	}, SpecTimeout(storyTime))

	It("is left alone if the member has a foreign Service with its name, and reports this (I4)", func(ctx SpecContext) {
		s := begin(ctx)
		member := x.Member(one)
		s.strange(ctx, member, handedOver(ctx))
		theirs := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "db"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}}}
		inMember(ctx, member, theirs)
		s.service(ctx, "db")
		s.pod(ctx, "app", boundTo(nodeOne), ofApp("db", "db-0"))
		s.noted(ctx, "Service", "db", v1alpha1.ReasonNameTaken, one, "Ask the member's admin to delete it")
		until[corev1.Service](ctx, s, member, "db", And(HaveField("UID", theirs.UID), HaveField("Labels", BeEmpty()), HaveField("Spec.Selector", BeEmpty())))
	}, SpecTimeout(storyTime))

	It("reports that the member's quota rejects it, and shares the retries with the namespace's other Services", func(ctx SpecContext) {
		const services = 24
		s := begin(ctx)
		member := x.Member(one)
		s.strange(ctx, member, handedOver(ctx))
		quota := s.exhausted(ctx, member, corev1.ResourceServices)
		mark, err := member.Audit().Mark(ctx)
		Expect(err).NotTo(HaveOccurred())
		for i := range services {
			s.service(ctx, fmt.Sprintf("db-%d", i))
		}
		s.pod(ctx, "app", boundTo(nodeOne))
		for i := range services {
			s.noted(ctx, "Service", fmt.Sprintf("db-%d", i), v1alpha1.ReasonRefusedByMember, one, "exceeded quota: "+quota.Name)
		}
		since, err := member.Audit().Since(ctx, mark)
		Expect(err).NotTo(HaveOccurred())
		tries := since.By(harness.MemberUser).Writes().Where(func(r controlplane.Request) bool {
			return r.Namespace == s.namespace && r.Resource == "services"
		})
		Expect(len(tries)).To(And(BeNumerically(">", 0), BeNumerically("<", services)), "\n%s", tries)
		AddReportEntry(fmt.Sprintf("%d requests for %d rejected Services", len(tries), services))

		By("raising the quota")
		patch(ctx, member, quota, fmt.Sprintf(`{"spec":{"hard":{"services":"%d"}}}`, services))
		for i := range services {
			until[corev1.Service](ctx, s, member, fmt.Sprintf("db-%d", i), Not(BeNil()))
		}
	}, SpecTimeout(storyTime))

	It("has the endpoints of other clusters that the member's Pods can reach, and no special ones", func(ctx SpecContext) {
		s := begin(ctx)
		member := x.Member(two)
		cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: two}}
		reachable := func(ctx context.Context, ranges ...string) {
			body, err := json.Marshal(map[string]any{"spec": map[string]any{"services": map[string]any{"reachable": ranges}}})
			Expect(err).NotTo(HaveOccurred())
			patch(ctx, x.Host, cr, string(body))
		}
		DeferCleanup(func(ctx SpecContext) {
			reachable(ctx)
			Expect(x.AwaitReady(ctx, two)).To(Succeed())
		}, NodeTimeout(settle))
		reachable(ctx, "all")
		s.service(ctx, "db", headless)
		s.service(ctx, "manual", func(service *corev1.Service) { service.Spec.Selector = nil })
		slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "manual-1", Labels: map[string]string{discoveryv1.LabelServiceName: "manual"}}}
		slice.AddressType = discoveryv1.AddressTypeIPv4
		slice.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.7"}}, {Addresses: []string{"100.100.100.200"}}}
		inHost(ctx, slice)
		s.pod(ctx, "db-0", boundTo(nodeOne), ofApp("db", "db-0"))
		s.pod(ctx, "db-1", boundTo(nodeTwo), ofApp("db", "db-1"))
		address := until[corev1.Pod](ctx, s, x.Host, "db-0", HaveField("Status.PodIP", Not(BeEmpty()))).Status.PodIP
		elsewhere := And(HaveField("Addresses", ConsistOf(address)), HaveField("Hostname", HaveValue(Equal("db-0"))), HaveField("NodeName", BeNil()), HaveField("TargetRef", BeNil()))
		s.endpoints(ctx, member, "db", v1alpha1.EndpointSliceManager, ConsistOf(elsewhere))
		s.endpoints(ctx, member, "db", ownController, ConsistOf(HaveField("Hostname", HaveValue(Equal("db-1")))))
		s.endpoints(ctx, member, "manual", v1alpha1.EndpointSliceManager, ConsistOf(HaveField("Addresses", ConsistOf("192.0.2.7"))))
		s.endpoints(ctx, x.Member(one), "db", v1alpha1.EndpointSliceManager, BeEmpty())
		patch(ctx, x.Host, slice, `{"endpoints":[{"addresses":["192.0.2.7"]},{"addresses":["192.0.2.8"],"conditions":{"ready":false}}]}`)
		s.endpoints(ctx, member, "manual", v1alpha1.EndpointSliceManager, ConsistOf(HaveField("Addresses", ConsistOf("192.0.2.7")),
			And(HaveField("Addresses", ConsistOf("192.0.2.8")), HaveField("Conditions.Ready", HaveValue(BeFalse())))))

		By("narrowing the ranges, and deleting the Pod elsewhere")
		s.deletePod(ctx, "db-0")
		s.endpoints(ctx, member, "db", v1alpha1.EndpointSliceManager, BeEmpty())
		reachable(ctx, "198.51.100.0/24")
		s.endpoints(ctx, member, "manual", v1alpha1.EndpointSliceManager, BeEmpty())
	}, SpecTimeout(storyTime))

	It("reports that it has no endpoints there if its Pods run elsewhere", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.service(ctx, "db")
		s.pod(ctx, "db-0", boundTo(nodeTwo), ofApp("db", "db-0"))
		s.pod(ctx, "client", boundTo(nodeOne))
		s.running(ctx, "client")
		s.noted(ctx, "Service", "db", v1alpha1.ReasonEndpointsInMember, one, "none of its Pods runs there", "spec.services.reachable")
	}, SpecTimeout(storyTime))

	It("is deleted with its namespace when no Pods and claims are left there", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		member := x.Member(one)
		s.service(ctx, "db")
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne), ofApp("db", "db-0"))
		s.running(ctx, "app", nodeOne)
		leaf := until[corev1.Service](ctx, s, member, "db", Not(BeNil()))
		s.deletePod(ctx, "app")
		gone[corev1.Pod](ctx, s, member, "app")
		s.pod(ctx, "next", using("data"), on(nodeOne), ofApp("db", "db-0"))
		s.running(ctx, "next", nodeOne)
		until[corev1.Service](ctx, s, member, "db", HaveField("UID", leaf.UID))
		s.deletePod(ctx, "next")
		s.deleteClaim(ctx, "data")
		gone[corev1.Service](ctx, s, member, "db")
		gone[corev1.Namespace](ctx, s, member, s.namespace)
	}, SpecTimeout(storyTime))

	It("is missing in a member with an earlier role, which the registration reports, and nothing else changes", suite.Slow, Serial, func(ctx SpecContext) {
		s := begin(ctx)
		member := x.Member(two)
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "xylem-member"}}
		Expect(member.API.Get(ctx, client.ObjectKeyFromObject(role), role)).To(Succeed())
		rules := role.Rules
		setRules := func(ctx context.Context, rules []rbacv1.PolicyRule) {
			body, err := json.Marshal(rules)
			Expect(err).NotTo(HaveOccurred())
			Expect(member.API.Patch(ctx, role, client.RawPatch(types.JSONPatchType, fmt.Appendf(nil, `[{"op":"replace","path":"/rules","value":%s}]`, body)))).To(Succeed())
		}
		earlier := slices.Clone(rules)
		for i := range earlier {
			if slices.Contains(earlier[i].Resources, "services") || slices.Contains(earlier[i].Resources, "endpointslices") {
				earlier[i].Verbs = []string{"list"}
			}
		}
		setRules(ctx, earlier)
		DeferCleanup(func(ctx SpecContext) {
			setRules(ctx, rules)
			Expect(x.AwaitReady(ctx, two)).To(Succeed())
		}, NodeTimeout(settle))
		Expect(x.Manager.Stop()).To(Succeed())
		Expect(x.Manager.Start(ctx)).To(Succeed())
		registration(ctx, two, And(
			says(v1alpha1.ConditionSynced, metav1.ConditionTrue, v1alpha1.ReasonServicesForbidden, "Upgrade the chart xylem-member"),
			says(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)))
		s.service(ctx, "db")
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeTwo), ofApp("db", "db-0"))
		s.running(ctx, "app", nodeTwo)
		gone[corev1.Service](ctx, s, member, "db")

		By("granting the permissions")
		setRules(ctx, rules)
		registration(ctx, two, says(v1alpha1.ConditionSynced, metav1.ConditionTrue, v1alpha1.ReasonSynced))
		until[corev1.Service](ctx, s, member, "db", HaveField("Spec.ClusterIP", Not(BeEmpty())))
	}, SpecTimeout(storyTime))
})

// leafOf returns a leaf Service without its contents.
func leafOf(s *story, name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
}
