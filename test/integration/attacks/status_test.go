package attacks_test

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// reports changes the status of a leaf Pod, as a member can, and waits until Xylem has processed
// the change. The reason, which Xylem copies to the host, is the barrier.
func (p *person) reports(ctx context.Context, name, reason string, change func(*corev1.PodStatus)) *corev1.Pod {
	GinkgoHelper()
	m := x.Member(two)
	leaf := must[corev1.Pod](ctx, m, p.namespace, name)
	before := leaf.DeepCopy()
	change(&leaf.Status)
	leaf.Status.Reason = reason
	Expect(m.API.Status().Patch(ctx, leaf, client.MergeFrom(before))).To(Succeed())
	Eventually(ctx, func(ctx context.Context) (string, error) {
		root, err := get[corev1.Pod](ctx, x.Host, p.namespace, name)
		return root.Status.Reason, err
	}).Should(Equal(reason))
	return must[corev1.Pod](ctx, x.Host, p.namespace, name)
}

// targets returns the Pods of a Service that are endpoints in the host.
func (p *person) targets(ctx context.Context) ([]string, error) {
	var slices discoveryv1.EndpointSliceList
	if err := x.Host.API.List(ctx, &slices, client.InNamespace(p.namespace)); err != nil {
		return nil, err
	}
	var names []string
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			names = append(names, endpoint.TargetRef.Name)
		}
	}
	return names, nil
}

var _ = Describe("A member's admin tries to harm the host with statuses of Pods and claims", func() {
	It("to freeze a Service that spans all members: addresses that the host's API server rejects", func(ctx SpecContext) {
		a := attacker(ctx)
		web := func(p *corev1.Pod) { p.Labels = map[string]string{"app": "web"} }
		Expect(a.api.Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "web"},
			Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}},
		})).To(Succeed())
		Expect(a.api.Create(ctx, a.pod("honest", nodeOne, nil, web))).To(Succeed())
		Expect(a.api.Create(ctx, a.pod("hostile", nodeTwo, nil, web))).To(Succeed())
		a.running(ctx, "honest")
		a.running(ctx, "hostile")
		Eventually(ctx, a.targets).Should(ConsistOf("honest", "hostile"))
		for i, address := range []string{"169.254.169.254", "fe80::1", "127.0.0.1", "0.0.0.0", "224.0.0.1"} {
			root := a.reports(ctx, "hostile", fmt.Sprintf("Poisoned%d", i), func(s *corev1.PodStatus) {
				s.PodIP, s.PodIPs, s.HostIP, s.HostIPs = address, []corev1.PodIP{{IP: address}}, address, []corev1.HostIP{{IP: address}}
			})
			Expect(root.Status.PodIP).To(BeEmpty(), address)
			Expect(root.Status.HostIP).To(BeEmpty(), address)
		}
		By("checking that the Service follows the Pods of the other member")
		Eventually(ctx, a.targets).Should(ConsistOf("honest"))
		Expect(a.api.Create(ctx, a.pod("successor", nodeOne, nil, web))).To(Succeed())
		Eventually(ctx, a.targets).Should(ConsistOf("honest", "successor"))
	}, SpecTimeout(attackTime))

	It("to fill the host's etcd: huge mounts, texts and messages", func(ctx SpecContext) {
		a := attacker(ctx)
		Expect(a.api.Create(ctx, a.pod("big", nodeTwo, nil))).To(Succeed())
		a.running(ctx, "big")
		long := strings.Repeat("m", 4000)
		root := a.reports(ctx, "big", "Mounts", func(s *corev1.PodStatus) {
			for i := range 150 {
				s.ContainerStatuses[0].VolumeMounts = append(s.ContainerStatuses[0].VolumeMounts, corev1.VolumeMountStatus{Name: fmt.Sprintf("%d-%s", i, long), MountPath: fmt.Sprintf("/%d-%s", i, long)})
			}
		})
		Expect(root.Status.ContainerStatuses[0].VolumeMounts).To(BeEmpty())
		Expect(root.Status.Size()).To(BeNumerically("<", 64<<10))
	}, SpecTimeout(attackTime))

	It("to use up a tenant's quota: resources that nobody requested", func(ctx SpecContext) {
		a := attacker(ctx)
		Expect(x.Host.API.Create(ctx, &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "quota"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"requests.storage": resource.MustParse("10Gi"), "requests.cpu": resource.MustParse("1")}},
		})).To(Succeed())
		used := func(ctx context.Context) (map[string]string, error) {
			quota, err := get[corev1.ResourceQuota](ctx, x.Host, a.namespace, "quota")
			used := map[string]string{}
			for name, quantity := range quota.Status.Used {
				used[string(name)] = quantity.String()
			}
			return used, err
		}
		Eventually(ctx, used).Should(HaveLen(2))
		small := func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("100m")}
		}
		Expect(a.api.Create(ctx, a.claim("disk"))).To(Succeed())
		Expect(a.api.Create(ctx, a.pod("app", nodeTwo, []string{"disk"}, small))).To(Succeed())
		a.running(ctx, "app")
		Eventually(ctx, used).Should(Equal(map[string]string{"requests.storage": "1Gi", "requests.cpu": "100m"}))
		m := x.Member(two)
		claim := must[corev1.PersistentVolumeClaim](ctx, m, a.namespace, "disk")
		Expect(m.API.Status().Patch(ctx, claim, client.RawPatch(types.MergePatchType, []byte(
			`{"status":{"allocatedResources":{"storage":"4Ei"},"conditions":[{"type":"Resizing","status":"True","reason":"Barrier"}]}}`)))).To(Succeed())
		root := a.reports(ctx, "app", "Grown", func(s *corev1.PodStatus) {
			s.ContainerStatuses[0].AllocatedResources = corev1.ResourceList{"cpu": resource.MustParse("1000"), "memory": resource.MustParse("1Ti")}
			s.ContainerStatuses[0].Resources = &corev1.ResourceRequirements{Requests: s.ContainerStatuses[0].AllocatedResources}
		})
		Expect(root.Status.ContainerStatuses[0].Resources.Requests.Cpu().String()).To(Equal("100m"))
		Eventually(ctx, func(ctx context.Context) (string, error) {
			c, err := get[corev1.PersistentVolumeClaim](ctx, x.Host, a.namespace, "disk")
			for _, condition := range c.Status.Conditions {
				if condition.Reason == "Barrier" {
					return c.Status.AllocatedResources.Storage().String(), err
				}
			}
			return "", err
		}).Should(Equal("1Gi"))
		By("shrinking the Pod, whose resources the member then reports as before, and larger")
		app := must[corev1.Pod](ctx, x.Host, a.namespace, "app")
		Expect(x.Host.API.SubResource("resize").Patch(ctx, app, client.RawPatch(types.StrategicMergePatchType, fmt.Appendf(nil,
			`{"spec":{"containers":[{"name":%q,"resources":{"requests":{"cpu":"50m"}}}]}}`, app.Spec.Containers[0].Name)))).To(Succeed())
		Eventually(ctx, used).Should(HaveKeyWithValue("requests.cpu", "50m"))
		root = a.reports(ctx, "app", "Shrunk", func(s *corev1.PodStatus) {
			s.ContainerStatuses[0].AllocatedResources = corev1.ResourceList{"cpu": resource.MustParse("1000")}
			s.ContainerStatuses[0].Resources = &corev1.ResourceRequirements{Requests: s.ContainerStatuses[0].AllocatedResources}
		})
		Expect(root.Status.ContainerStatuses[0].Resources.Requests.Cpu().String()).To(Equal("50m"))
		By("checking that the tenant can continue")
		Expect(a.api.Create(ctx, a.claim("another"))).To(Succeed())
		Expect(a.api.Create(ctx, a.pod("another", nodeOne, nil, small))).To(Succeed())
		Eventually(ctx, used).Should(Equal(map[string]string{"requests.storage": "2Gi", "requests.cpu": "150m"}))
	}, SpecTimeout(attackTime))

	It("to make the virtual node grow: a thousand kinds of resources", func(ctx SpecContext) {
		m := x.Member(two)
		var nodes corev1.NodeList
		Expect(m.API.List(ctx, &nodes)).To(Succeed())
		node := &nodes.Items[0]
		before := node.DeepCopy()
		DeferCleanup(func(ctx SpecContext) {
			now := must[corev1.Node](ctx, m, "", before.Name)
			restored := now.DeepCopy()
			restored.Status.Capacity, restored.Status.Allocatable = before.Status.Capacity, before.Status.Allocatable
			Expect(m.API.Status().Patch(ctx, restored, client.MergeFrom(now))).To(Succeed())
		}, NodeTimeout(settle))
		node.Status.Capacity, node.Status.Allocatable = node.Status.Capacity.DeepCopy(), node.Status.Allocatable.DeepCopy()
		for i := range 250 {
			name := corev1.ResourceName(fmt.Sprintf("example.com/made-up-%d", i))
			node.Status.Capacity[name], node.Status.Allocatable[name] = resource.MustParse("1"), resource.MustParse("1")
		}
		Expect(m.API.Status().Patch(ctx, node, client.MergeFrom(before))).To(Succeed())
		Eventually(ctx, func(ctx context.Context) (int, error) {
			shown, err := get[corev1.Node](ctx, x.Host, "", v1alpha1.DefaultNodeNamePrefix+two)
			return len(shown.Status.Capacity), err
		}).Should(Equal(64))
	}, SpecTimeout(attackTime))
})
