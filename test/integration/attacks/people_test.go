package attacks_test

import (
	"context"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// person is a user with the ClusterRole admin in one namespace, like a tenant.
type person struct {
	namespace string
	cluster   *harness.Cluster
	// api is the person's own client.
	api client.Client
}

// somebody creates a user in a cluster, with a certificate but without permissions.
func somebody(c *harness.Cluster, user string) client.Client {
	GinkgoHelper()
	kubeconfig, err := c.UserKubeconfig(controlplane.Direct, user)
	Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	config.QPS = -1
	api, err := client.New(config, client.Options{Scheme: x.Host.API.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	return api
}

// newTenant creates a namespace and its admin in the host or in a member.
func newTenant(ctx context.Context, c *harness.Cluster, prefix string, change ...func(*corev1.Namespace)) *person {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix + "-"}}
	for _, f := range change {
		f(ns)
	}
	Expect(c.API.Create(ctx, ns)).To(Succeed())
	p := &person{namespace: ns.Name, cluster: c, api: somebody(c, "admin-of-"+ns.Name)}
	Expect(c.API.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "admin"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "admin-of-" + ns.Name}},
	})).To(Succeed())
	Eventually(ctx, func(ctx context.Context) error {
		return p.api.Get(ctx, client.ObjectKey{Namespace: ns.Name, Name: "default"}, &corev1.ServiceAccount{})
	}).Should(Succeed())
	return p
}

// attacker creates a tenant of the host, and deletes the tenant's objects at the end. If the attack
// succeeded, it dumps them first.
func attacker(ctx context.Context, change ...func(*corev1.Namespace)) *person {
	GinkgoHelper()
	p := newTenant(ctx, x.Host, "attacker", change...)
	DeferCleanup(p.leave, NodeTimeout(settle))
	return p
}

func (p *person) leave(ctx SpecContext) {
	if CurrentSpecReport().Failed() {
		x.Dump(ctx, GinkgoWriter, p.namespace)
	}
	for _, obj := range []client.Object{&corev1.Pod{}, &snapshotv1.VolumeSnapshot{}, &corev1.PersistentVolumeClaim{}} {
		Expect(x.Host.API.DeleteAllOf(ctx, obj, client.InNamespace(p.namespace))).To(Succeed())
	}
}

func (p *person) claim(name string, change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := harness.Claim(p.namespace, name, class)
	for _, f := range change {
		f(c)
	}
	return c
}

// pod returns a Pod that uses claims and that the scheduler places on the given node.
func (p *person) pod(name, node string, claims []string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := harness.Pod(p.namespace, name, claims...)
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	for _, f := range change {
		f(pod)
	}
	return pod
}

// runs creates a Pod with its own claim, and waits until it runs.
func (p *person) runs(ctx context.Context, name, node string) {
	GinkgoHelper()
	Expect(p.api.Create(ctx, p.claim(name))).To(Succeed())
	Expect(p.api.Create(ctx, p.pod(name, node, []string{name}))).To(Succeed())
	p.running(ctx, name)
}

func (p *person) running(ctx context.Context, name string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) (corev1.PodPhase, error) {
		pod, err := get[corev1.Pod](ctx, x.Host, p.namespace, name)
		return pod.Status.Phase, err
	}).Should(Equal(corev1.PodRunning))
}

// told waits until the conditions of a Pod or claim contain a reason and the given parts of
// messages.
func (p *person) told(ctx context.Context, obj client.Object, reason string, words ...string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) (string, error) {
		if err := x.Host.API.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return "", err
		}
		var said []string
		switch o := obj.(type) {
		case *corev1.Pod:
			for _, c := range o.Status.Conditions {
				said = append(said, c.Reason+": "+c.Message)
			}
		case *corev1.PersistentVolumeClaim:
			for _, c := range o.Status.Conditions {
				said = append(said, c.Reason+": "+c.Message)
			}
		}
		return strings.Join(said, "\n"), nil
	}).Should(And(ContainSubstring(reason+": "), allOf(words)))
}

func allOf(words []string) OmegaMatcher {
	all := make([]OmegaMatcher, 0, len(words))
	for _, w := range words {
		all = append(all, ContainSubstring(w))
	}
	return And(all...)
}

func get[T any, P interface {
	*T
	client.Object
}](ctx context.Context, c *harness.Cluster, namespace, name string) (P, error) {
	obj := P(new(T))
	return obj, c.API.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)
}

// must reads an object, which must exist.
func must[T any, P interface {
	*T
	client.Object
}](ctx context.Context, c *harness.Cluster, namespace, name string) P {
	GinkgoHelper()
	obj, err := get[T, P](ctx, c, namespace, name)
	Expect(err).NotTo(HaveOccurred())
	return obj
}

// victim is a tenant with a Pod, its volume and a Secret in member one.
var victim *prey

type prey struct {
	*person
	claim  *corev1.PersistentVolumeClaim
	pod    *corev1.Pod
	volume *corev1.PersistentVolume
	leaf   *corev1.PersistentVolume
	taken  *taken
}

func newVictim(ctx context.Context) *prey {
	GinkgoHelper()
	v := &prey{person: newTenant(ctx, x.Host, "victim")}
	Expect(v.api.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: v.namespace, Name: "password"}, StringData: map[string]string{"password": secretCanary},
	})).To(Succeed())
	Expect(v.api.Create(ctx, v.person.claim("data"))).To(Succeed())
	Expect(v.api.Create(ctx, v.person.pod("app", nodeOne, []string{"data"}, func(p *corev1.Pod) {
		p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "password"}}}}
	}))).To(Succeed())
	v.running(ctx, "app")
	v.claim = must[corev1.PersistentVolumeClaim](ctx, x.Host, v.namespace, "data")
	v.pod = must[corev1.Pod](ctx, x.Host, v.namespace, "app")
	v.volume = must[corev1.PersistentVolume](ctx, x.Host, "", v.claim.Spec.VolumeName)
	_, leaf, _ := strings.Cut(v.volume.Spec.CSI.VolumeHandle, "/")
	v.leaf = must[corev1.PersistentVolume](ctx, x.Member(one), "", leaf)
	v.taken = v.takes(ctx, "nightly", "data")
	return v
}

// unharmed checks after an attack that all objects of the victim are intact.
func (v *prey) unharmed(ctx context.Context) {
	GinkgoHelper()
	claim := must[corev1.PersistentVolumeClaim](ctx, x.Host, v.namespace, "data")
	Expect(claim.UID).To(Equal(v.claim.UID))
	Expect(claim.Spec.VolumeName).To(Equal(v.claim.Spec.VolumeName))
	Expect(claim.Status.Phase).To(Equal(corev1.ClaimBound))
	Expect(claim.DeletionTimestamp).To(BeNil())
	volume := must[corev1.PersistentVolume](ctx, x.Host, "", v.volume.Name)
	Expect(volume.UID).To(Equal(v.volume.UID))
	Expect(volume.Spec).To(Equal(v.volume.Spec))
	Expect(volume.Status.Phase).To(Equal(corev1.VolumeBound))
	leaf := must[corev1.PersistentVolume](ctx, x.Member(one), "", v.leaf.Name)
	Expect(leaf.UID).To(Equal(v.leaf.UID))
	Expect(leaf.Spec).To(Equal(v.leaf.Spec))
	Expect(leaf.Annotations).To(Equal(v.leaf.Annotations))
	pod := must[corev1.Pod](ctx, x.Host, v.namespace, "app")
	Expect(pod.UID).To(Equal(v.pod.UID))
	Expect(pod.Status.Phase).To(Equal(corev1.PodRunning))
	Expect(must[corev1.Pod](ctx, x.Member(one), v.namespace, "app").Status.Phase).To(Equal(corev1.PodRunning))
	book, err := x.Member(one).Ledger()
	Expect(err).NotTo(HaveOccurred())
	disks := 0
	for _, disk := range book.Live() {
		if disk.ClaimNamespace == v.namespace {
			disks++
		}
	}
	Expect(disks).To(Equal(1))
	v.taken.unharmed(ctx)
	for _, m := range x.Members() {
		var secrets corev1.SecretList
		Expect(m.API.List(ctx, &secrets)).To(Succeed())
		for _, s := range secrets.Items {
			if s.Namespace != v.namespace {
				for _, value := range s.Data {
					Expect(string(value)).NotTo(ContainSubstring(secretCanary), "%s/%s in %s", s.Namespace, s.Name, m.Name())
				}
			}
		}
	}
}

var _ = AfterEach(func(ctx SpecContext) { victim.unharmed(ctx) }, NodeTimeout(settle))

// barrier creates a Pod in each member after the attack, and waits until Xylem has completely
// processed it. By then, the effects of the attack would be visible.
func barrier(ctx context.Context) {
	GinkgoHelper()
	p := attacker(ctx)
	for _, node := range []string{nodeOne, nodeTwo} {
		name := strings.TrimPrefix(node, "kosmos-")
		Expect(p.api.Create(ctx, p.claim(name))).To(Succeed())
		Expect(p.api.Create(ctx, p.pod(name, node, []string{name}))).To(Succeed())
	}
	for _, name := range []string{one, two} {
		p.running(ctx, name)
	}
}

// nothingIn asserts that a member has no Pod, claim or Secret in a namespace.
func nothingIn(ctx context.Context, m *harness.Cluster, namespace string) {
	GinkgoHelper()
	for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.PersistentVolumeClaimList{}, &corev1.SecretList{}} {
		Expect(m.API.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
		Expect(list).To(HaveField("Items", BeEmpty()))
	}
}
