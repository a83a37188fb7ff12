package attacks_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/config"
	"github.com/xylem-io/xylem/test/controlplane"
)

// managerAs returns a client that uses the token of the manager's account in the host, and acts as a user.
func managerAs(ctx context.Context, user string) client.Client {
	GinkgoHelper()
	raw, err := x.Fleet.Host.ServiceAccountKubeconfig(ctx, controlplane.Direct, v1alpha1.DefaultNamespace, "xylem-controller-manager")
	Expect(err).NotTo(HaveOccurred())
	way, err := clientcmd.RESTConfigFromKubeConfig(raw)
	Expect(err).NotTo(HaveOccurred())
	way.Impersonate = rest.ImpersonationConfig{UserName: user}
	api, err := client.New(way, client.Options{Scheme: x.Host.API.Scheme(), Mapper: x.Host.API.RESTMapper()})
	Expect(err).NotTo(HaveOccurred())
	return api
}

// tokenFor requests a token of a ServiceAccount, which is bound to a Pod if there is one.
func tokenFor(ctx context.Context, api client.Client, namespace, account string, pod *corev1.Pod, audiences ...string) error {
	review := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}
	if pod != nil {
		review.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
	}
	return api.SubResource("token").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}, review)
}

var _ = Describe("A token stolen from the manager, which may act as a virtual node", func() {
	It("gets only what Pods on this node use, as the node's kubelet would", func(ctx SpecContext) {
		role, binding, err := config.NodeIdentity(one, []string{nodeOne}, v1alpha1.DefaultNamespace, "xylem-controller-manager")
		Expect(err).NotTo(HaveOccurred())
		for _, obj := range []client.Object{role, binding} {
			Expect(x.Host.API.Create(ctx, obj)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(x.Host.API.Delete(ctx, obj)).To(Succeed()) }, NodeTimeout(settle))
		}
		a := attacker(ctx)
		for _, name := range []string{"used", "unused"} {
			Expect(x.Host.API.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: name}})).To(Succeed())
			Expect(x.Host.API.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: name}})).To(Succeed())
		}
		using := func(p *corev1.Pod) {
			p.Spec.ServiceAccountName = "used"
			p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "used"}}}}
		}
		Expect(x.Host.API.Create(ctx, a.pod("here", nodeOne, nil, using))).To(Succeed())
		Expect(x.Host.API.Create(ctx, a.pod("there", nodeTwo, nil, func(p *corev1.Pod) { p.Spec.ServiceAccountName = "unused" }))).To(Succeed())
		a.running(ctx, "here")
		a.running(ctx, "there")
		here, there := must[corev1.Pod](ctx, x.Host, a.namespace, "here"), must[corev1.Pod](ctx, x.Host, a.namespace, "there")

		node := managerAs(ctx, "system:node:"+nodeOne)
		Eventually(func() error { return tokenFor(ctx, node, a.namespace, "used", here) }).WithContext(ctx).Should(Succeed())
		Expect(node.Get(ctx, client.ObjectKey{Namespace: a.namespace, Name: "used"}, &corev1.Secret{})).To(Succeed())

		By("asking for more")
		Expect(tokenFor(ctx, node, a.namespace, "unused", here)).To(forbidden, "an account that no Pod on the node uses")
		Expect(tokenFor(ctx, node, a.namespace, "unused", there)).To(forbidden, "the account of a Pod on another node")
		Expect(tokenFor(ctx, node, victim.namespace, "default", here)).NotTo(Succeed(), "bound to a Pod of another namespace")
		Expect(tokenFor(ctx, node, a.namespace, "used", nil)).To(forbidden, "not bound to a Pod")
		Expect(tokenFor(ctx, node, a.namespace, "used", here, "vault.example.com")).To(forbidden, "an audience that the Pod does not project")
		Expect(tokenFor(ctx, node, v1alpha1.DefaultNamespace, "xylem-controller-manager", here)).To(forbidden, "the manager's own account")
		Expect(node.Get(ctx, client.ObjectKey{Namespace: a.namespace, Name: "unused"}, &corev1.Secret{})).To(forbidden)
		Expect(node.List(ctx, &corev1.SecretList{}, client.InNamespace(a.namespace))).To(forbidden)
		Expect(node.Delete(ctx, here)).To(forbidden, "another verb")
		Expect(node.Get(ctx, client.ObjectKey{Name: nodeOne}, &corev1.Node{})).To(forbidden, "another resource")

		By("acting as somebody else")
		for _, user := range []string{"system:node:" + nodeTwo, "system:node:host-node-1", "admin", "system:serviceaccount:" + a.namespace + ":used"} {
			other := managerAs(ctx, user)
			Expect(tokenFor(ctx, other, a.namespace, "unused", there)).To(forbidden, user)
			Expect(other.Get(ctx, client.ObjectKey{Namespace: a.namespace, Name: "used"}, &corev1.Secret{})).To(forbidden, user)
		}
		Expect(tokenFor(ctx, managerAs(ctx, ""), a.namespace, "used", here)).To(forbidden, "the manager itself")
	}, SpecTimeout(attackTime))
})
