package attacks_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

var _ = Describe("A tenant of the host tries to use a Service", func() {
	It("to open a member, to get a name in its DNS zone, and to reach its metadata service", func(ctx SpecContext) {
		a := attacker(ctx)
		reachable := func(ctx context.Context, body string) {
			Expect(patched(ctx, x.Host.API, &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: one}}, body)).To(Succeed())
		}
		reachable(ctx, `{"spec":{"services":{"reachable":["all"]}}}`)
		DeferCleanup(func(ctx SpecContext) {
			reachable(ctx, `{"spec":{"services":{"reachable":null}}}`)
			Expect(x.AwaitReady(ctx, one)).To(Succeed())
		}, NodeTimeout(settle))
		service := func(name string, spec corev1.ServiceSpec) {
			GinkgoHelper()
			Expect(a.api.Create(ctx, &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: name,
					Labels:      map[string]string{"service.kubernetes.io/service-proxy-name": "other"},
					Annotations: map[string]string{"external-dns.alpha.kubernetes.io/hostname": "www.example.com"}},
				Spec: spec,
			})).To(Succeed())
		}
		ports := []corev1.ServicePort{{Port: 80}}
		service("open", corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ExternalIPs: []string{"192.0.2.1"}, LoadBalancerSourceRanges: []string{"0.0.0.0/0"}, Ports: ports})
		service("named", corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "metadata.google.internal"})
		// The ClusterRole admin does not include EndpointSlices, but many hosts grant them.
		Expect(x.Host.API.Create(ctx, &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: a.namespace, Name: "open-1", Labels: map[string]string{discoveryv1.LabelServiceName: "open"}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"100.100.100.200"}}, {Addresses: []string{"168.63.129.16"}}, {Addresses: []string{"198.51.100.7"}}},
		})).To(Succeed())
		Expect(a.api.Create(ctx, a.pod("app", nodeOne, nil))).To(Succeed())
		a.running(ctx, "app")

		Eventually(ctx, func(g Gomega) {
			var slices discoveryv1.EndpointSliceList
			g.Expect(x.Member(one).API.List(ctx, &slices, client.InNamespace(a.namespace), client.MatchingLabels{discoveryv1.LabelManagedBy: v1alpha1.EndpointSliceManager})).To(Succeed())
			g.Expect(slices.Items).To(ConsistOf(HaveField("Endpoints", ConsistOf(HaveField("Addresses", ConsistOf("198.51.100.7"))))))
		}).Should(Succeed())
		leaf := must[corev1.Service](ctx, x.Member(one), a.namespace, "open")
		Expect(leaf.Spec.Type).To(Equal(corev1.ServiceTypeClusterIP))
		Expect(leaf.Spec.ExternalIPs).To(BeEmpty())
		Expect(leaf.Spec.LoadBalancerSourceRanges).To(BeEmpty())
		Expect(leaf.Spec.Ports).To(ConsistOf(HaveField("NodePort", BeZero())))
		Expect(leaf.Labels).To(HaveLen(2))
		Expect(leaf.Annotations).To(HaveLen(2))
		_, err := get[corev1.Service](ctx, x.Member(one), a.namespace, "named")
		Expect(err).To(Satisfy(apierrors.IsNotFound))
	}, SpecTimeout(attackTime))
})
