package attacks_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/suite"
)

const enforce = "pod-security.kubernetes.io/enforce"

// thief returns a client that uses the token of the manager's account in member one.
func thief(ctx context.Context) client.Client {
	GinkgoHelper()
	raw, err := x.MemberKubeconfig(ctx, one)
	Expect(err).NotTo(HaveOccurred())
	return clientFrom(raw)
}

func clientFrom(raw []byte) client.Client {
	GinkgoHelper()
	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	Expect(err).NotTo(HaveOccurred())
	api, err := client.New(config, client.Options{Scheme: x.Host.API.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	return api
}

// escaping gives a Pod all privileges that it needs to take over its node.
func escaping(p *corev1.Pod) {
	yes := true
	p.Spec.HostPID, p.Spec.HostNetwork = true, true
	p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: &yes}
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "node", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}})
}

var _ = Describe("A token stolen from a member", func() {
	It("cannot create a component's namespace or a privileged one", func(ctx SpecContext) {
		api := thief(ctx)
		for name, level := range map[string]string{"istio-system": "baseline", "cert-manager": "baseline", "stolen": "privileged", "stolen-too": ""} {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
			stamp(ctx, ns, name, "any")
			if level != "" {
				ns.Labels[enforce] = level
			}
			Expect(api.Create(ctx, ns)).To(forbidden, name)
		}
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "stolen"}}
		stamp(ctx, ns, "stolen", "any")
		ns.Labels[enforce] = "baseline"
		Expect(api.Create(ctx, ns)).To(Succeed(), "checking that it can create other namespaces, as SECURITY.md documents")
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(x.Member(one).API.Delete(ctx, ns))).To(Succeed())
		}, NodeTimeout(settle))
		Expect(patched(ctx, api, ns, `{"metadata":{"labels":{"`+enforce+`":"privileged"}}}`)).To(forbidden)
		Expect(patched(ctx, api, ns, `{"metadata":{"labels":{"`+enforce+`":null}}}`)).To(forbidden)
	}, SpecTimeout(attackTime))

	It("cannot take over a node with a Pod, in any namespace", func(ctx SpecContext) {
		api := thief(ctx)
		m := x.Member(one)
		handed := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "handed-", Labels: map[string]string{v1alpha1.LabelHost: hostID(ctx)}}}
		Expect(m.API.Create(ctx, handed)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(m.API.Delete(ctx, handed)).To(Succeed()) }, NodeTimeout(settle))
		Expect(m.AwaitNamespace(ctx, handed.Name)).To(Succeed())
		for _, namespace := range []string{handed.Name, victim.namespace} {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "escape"}, Spec: corev1.PodSpec{
				AutomountServiceAccountToken: new(false), Containers: []corev1.Container{{Name: "main", Image: "example/main"}},
			}}
			stamp(ctx, p, namespace+"/escape", "any")
			escaping(p)
			Expect(api.Create(ctx, p)).To(forbidden, namespace)
		}
	}, SpecTimeout(attackTime))

	It("cannot destroy a foreign volume or adopt an unused one", func(ctx SpecContext) {
		api := thief(ctx)
		m := x.Member(one)
		pv := static("strangers", "strangers-ns", "precious")
		pv.Spec.StorageClassName = "whatever"
		pv.Spec.ClaimRef.UID = "gone"
		Expect(m.API.Create(ctx, pv)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(m.API.Delete(ctx, pv)).To(Succeed()) }, NodeTimeout(settle))
		Eventually(ctx, func(ctx context.Context) (corev1.PersistentVolumePhase, error) {
			return pv.Status.Phase, m.API.Get(ctx, client.ObjectKeyFromObject(pv), pv)
		}).Should(Equal(corev1.VolumeReleased))
		spec := pv.Spec.DeepCopy()
		stamped := func(policy, root string) string {
			return `"metadata":{"labels":{"xylem.io/host":"` + hostID(ctx) + `","app.kubernetes.io/managed-by":"xylem"},"annotations":{"xylem.io/reclaim-policy":"` +
				policy + `","xylem.io/root":"` + root + `","xylem.io/root-uid":"u"}}`
		}
		for what, patch := range map[string]string{
			"stamp it with policy Delete":      `{` + stamped("Delete", "strangers-ns/precious") + `}`,
			"stamp it with its own policy":     `{` + stamped("Retain", "strangers-ns/precious") + `}`,
			"stamp and destroy it":             `{` + stamped("Delete", "strangers-ns/precious") + `,"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`,
			"stamp it and change its claimRef": `{` + stamped("Retain", "mine/mine") + `,"spec":{"claimRef":{"namespace":"mine","name":"mine","uid":"u"}}}`,
			"destroy it":                       `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`,
		} {
			Expect(patched(ctx, api, pv, patch)).To(forbidden, what)
		}
		now := must[corev1.PersistentVolume](ctx, m, "", pv.Name)
		Expect(now.Spec).To(Equal(*spec))
		Expect(now.Labels).NotTo(HaveKey(v1alpha1.LabelHost))
	}, SpecTimeout(attackTime))

	It("can set the claimRef of its host's volumes only to the claim in the stamp", func(ctx SpecContext) {
		Expect(patched(ctx, thief(ctx), victim.leaf, `{"metadata":{"annotations":{"xylem.io/reclaim-policy":"Retain"}}}`)).To(forbidden)
		Expect(patched(ctx, thief(ctx), victim.leaf, `{"spec":{"claimRef":{"namespace":"mine","name":"mine","uid":"u"}}}`)).To(forbidden)
	}, SpecTimeout(attackTime))

	It("cannot write to objects of another host if its account belongs to one host", func(ctx SpecContext) {
		m := x.Member(one)
		own := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultNamespace, Name: "xylem-host-another"}}
		Expect(m.API.Create(ctx, own)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(m.API.Delete(ctx, own)).To(Succeed()) }, NodeTimeout(settle))
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: own.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "xylem-member"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: own.Namespace, Name: own.Name}},
		}
		Expect(m.API.Create(ctx, binding)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(m.API.Delete(ctx, binding)).To(Succeed()) }, NodeTimeout(settle))
		raw, err := x.Fleet.Member(one).ServiceAccountKubeconfig(ctx, controlplane.Direct, own.Namespace, own.Name)
		Expect(err).NotTo(HaveOccurred())
		api := clientFrom(raw)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: victim.namespace, Name: "app"}}
		Eventually(ctx, func(ctx context.Context) error { return api.Get(ctx, client.ObjectKeyFromObject(pod), pod) }).Should(Succeed())
		foreign := MatchError(ContainSubstring("belongs to host another"))
		Expect(patched(ctx, api, pod, `{"metadata":{"labels":{"a":"b"}}}`)).To(foreign)
		Expect(api.Delete(ctx, pod)).To(foreign)
		Expect(api.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: victim.namespace}})).To(foreign)
		Expect(patched(ctx, api, victim.leaf, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)).To(foreign)
	}, SpecTimeout(attackTime))
})

var _ = Describe("Pod Security labels of a host namespace", func() {
	It("do not loosen the member's requirements", func(ctx SpecContext) {
		a := attacker(ctx, func(ns *corev1.Namespace) { ns.Labels = map[string]string{enforce: "privileged"} })
		pod := a.pod("escape", nodeOne, nil, escaping)
		Expect(a.api.Create(ctx, pod)).To(Succeed(), "the host must accept the Pod")
		a.told(ctx, pod, v1alpha1.ReasonRefusedByMember, one)
		ns := must[corev1.Namespace](ctx, x.Member(one), "", a.namespace)
		Expect(ns.Labels).To(HaveKeyWithValue(enforce, "baseline"))
		_, err := get[corev1.Pod](ctx, x.Member(one), a.namespace, "escape")
		Expect(apierrors.IsNotFound(err)).To(BeTrue())
	}, SpecTimeout(attackTime))

	It("take effect in the member only as far as the member's admin allows", func(ctx SpecContext) {
		a := attacker(ctx, func(ns *corev1.Namespace) { ns.Labels = map[string]string{enforce: "privileged"} })
		Expect(a.api.Create(ctx, a.pod("first", nodeOne, nil))).To(Succeed())
		a.running(ctx, "first")
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.namespace}}
		Expect(patched(ctx, x.Member(one).API, ns, `{"metadata":{"labels":{"`+enforce+`":"privileged"}}}`)).To(Succeed())
		Expect(a.api.Create(ctx, a.pod("second", nodeOne, nil, escaping))).To(Succeed())
		a.running(ctx, "second")
		Expect(must[corev1.Namespace](ctx, x.Member(one), "", a.namespace).Labels).To(HaveKeyWithValue(enforce, "privileged"))
	}, SpecTimeout(attackTime))
})

var _ = Describe("A namespace of a member's component", func() {
	It("is not created when a tenant of the host uses its name", func(ctx SpecContext) {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "istio-system"}}
		Expect(x.Host.API.Create(ctx, ns)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(x.Host.API.Delete(ctx, ns)).To(Succeed()) }, NodeTimeout(settle))
		a := &person{namespace: ns.Name, cluster: x.Host, api: x.Host.API}
		DeferCleanup(a.leave, NodeTimeout(settle))
		Expect(x.Host.AwaitNamespace(ctx, ns.Name)).To(Succeed())
		claim, pod := a.claim("data"), a.pod("app", nodeOne, []string{"data"})
		Expect(a.api.Create(ctx, claim)).To(Succeed())
		Expect(a.api.Create(ctx, pod)).To(Succeed())
		a.told(ctx, claim, v1alpha1.ReasonNamespaceNotAdmitted, "istio-system", "spec.namespaces")
		_, err := get[corev1.Namespace](ctx, x.Member(one), "", "istio-system")
		Expect(apierrors.IsNotFound(err)).To(BeTrue())
	}, SpecTimeout(attackTime))
})

var _ = Describe("The registration of a member", func() {
	It("reports that the member's policies are in force", func(ctx SpecContext) {
		suite.Until[v1alpha1.ClusterRegistration](ctx, x.Host, "", one, HaveField("Status.Conditions", ContainElement(And(
			HaveField("Type", v1alpha1.ConditionPolicyEnforced), HaveField("Reason", v1alpha1.ReasonPolicyInForce)))))
	}, SpecTimeout(attackTime))
})
