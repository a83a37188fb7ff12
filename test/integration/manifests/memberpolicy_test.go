package manifests_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
)

const (
	// memberAccount is the manager's user name in a member.
	memberAccount = "system:serviceaccount:xylem-system:xylem"
	// someHost is the cluster ID of the host.
	someHost = "0d6c2a35-0000-4000-8000-000000000001"
)

// inMember returns a client of the member that impersonates a user in some groups. Without a user,
// the client is a cluster admin.
func inMember(user string, groups ...string) client.Client {
	GinkgoHelper()
	config, err := fleet.Member("member").RESTConfig(controlplane.Direct)
	Expect(err).NotTo(HaveOccurred())
	if user != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	}
	return clientOf(config)
}

// stamped sets the host's complete stamp on an object.
func stamped(o client.Object) {
	root := o.GetName()
	if ns := o.GetNamespace(); ns != "" {
		root = ns + "/" + root
	}
	label(v1alpha1.LabelHost, someHost)(o)
	label(v1alpha1.LabelManagedBy, v1alpha1.ManagedByValue)(o)
	annotate(v1alpha1.AnnotationRoot, root)(o)
	annotate(v1alpha1.AnnotationRootUID, "some-uid")(o)
}

func unstamped(client.Object) {}

// nobody refers to an owner that does not exist, so the garbage collector would delete an object
// with these references.
var nobody = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: "gone", UID: "gone"}}

// leafPod returns a Pod as root_pod creates it.
func leafPod(namespace string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := pod(namespace)
	no := false
	p.Spec.AutomountServiceAccountToken = &no
	for _, f := range change {
		f(p)
	}
	return p
}

// usePermission returns the objects that allow the account of someHost to "use" an object of a kind that exists only for
// this permission.
func usePermission(resource, name string) []client.Object {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: unique(resource)}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"xylem.io"}, Resources: []string{resource}, ResourceNames: []string{name}, Verbs: []string{"use"},
	}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: memberAccount + "-host-" + someHost}},
	}
	return []client.Object{role, binding}
}

// leafBudget returns a budget as leaf_budget creates it.
func leafBudget(namespace string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db", v1alpha1.LabelHost: someHost}},
		},
	}
}

// leafService returns a Service as root_service creates it, but without a stamp.
func leafService(namespace *string, change ...func(*corev1.Service)) func() client.Object {
	return func() client.Object {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: *namespace, Name: unique("web")}}
		s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Ports: []corev1.ServicePort{{Port: 80}}}
		for _, f := range change {
			f(s)
		}
		return s
	}
}

// leafSlice returns an EndpointSlice as root_service creates it, but without a stamp.
func leafSlice(namespace *string, addresses ...string) func() client.Object {
	return func() client.Object {
		slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: *namespace, Name: unique("web"), Labels: map[string]string{
			discoveryv1.LabelManagedBy: v1alpha1.EndpointSliceManager, discoveryv1.LabelServiceName: "web",
		}}, AddressType: discoveryv1.AddressTypeIPv4}
		if strings.Contains(addresses[0], ":") {
			slice.AddressType = discoveryv1.AddressTypeIPv6
		}
		for _, address := range addresses {
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}})
		}
		return slice
	}
}

// manyAddresses returns as many addresses as an EndpointSlice can have endpoints.
func manyAddresses() []string {
	all := make([]string, 1000)
	for i := range all {
		all[i] = fmt.Sprintf("10.1.%d.%d", i/250, 1+i%250)
	}
	return all
}

var _ = Describe("The policies of a member", Ordered, func() {
	var (
		memberAdmin, account, other client.Client
		// ours and theirs are accounts for one host each: someHost, and another host.
		ours, theirs client.Client
		// made, handed and foreign are namespaces: made has the account's stamp, handed has only
		// the label, and foreign has neither.
		made, handed, foreign string
	)

	newNamespace := func(ctx context.Context, prefix string, change func(client.Object)) string {
		GinkgoHelper()
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: unique(prefix)}}
		change(ns)
		Expect(memberAdmin.Create(ctx, ns)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(memberAdmin.Delete(ctx, ns)).To(Succeed()) }, NodeTimeout(settle))
		Eventually(ctx, func(ctx context.Context) error {
			return memberAdmin.Get(ctx, client.ObjectKey{Namespace: ns.Name, Name: "default"}, &corev1.ServiceAccount{})
		}).Should(Succeed())
		return ns.Name
	}

	BeforeAll(func(ctx SpecContext) {
		memberAdmin = inMember("")
		// The accounts have all permissions, so that only admission limits them.
		account = inMember(memberAccount, "tenants")
		ours, theirs = inMember(memberAccount+"-host-"+someHost, "tenants"), inMember(memberAccount+"-host-another", "tenants")
		other = inMember("other", "tenants")
		role := &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "tenants-of-everything"},
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{"", "coordination.k8s.io", discoveryv1.GroupName, policyv1.GroupName, rbacv1.GroupName}, Resources: []string{"*"}, Verbs: []string{"*"},
			}},
		}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "tenants"}},
		}
		for _, o := range []client.Object{role, binding} {
			Expect(memberAdmin.Create(ctx, o)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(memberAdmin.Delete(ctx, o)).To(Succeed()) }, NodeTimeout(settle))
		}
		made = newNamespace(ctx, "made", stamped)
		handed = newNamespace(ctx, "handed", label(v1alpha1.LabelHost, someHost))
		foreign = newNamespace(ctx, "foreign", unstamped)
		By("waiting until the policies are in force")
		Eventually(ctx, func(ctx context.Context) error {
			return account.Create(ctx, claim(foreign), client.DryRunAll)
		}).Should(MatchError(ContainSubstring("Xylem's account")))
		forged := claim(foreign)
		stamped(forged)
		Eventually(ctx, func(ctx context.Context) error {
			return other.Create(ctx, forged.DeepCopy(), client.DryRunAll)
		}).Should(MatchError(ContainSubstring("stamps.xylem.io")))
	}, NodeTimeout(2*settle))

	It("have valid expressions", func(ctx SpecContext) {
		for _, name := range []string{"xylem-account", "xylem-streams", "xylem-pods", "xylem-priorities", "xylem-stamps"} {
			Eventually(ctx, func(g Gomega) {
				var policy admissionv1.ValidatingAdmissionPolicy
				g.Expect(memberAdmin.Get(ctx, client.ObjectKey{Name: name}, &policy)).To(Succeed())
				g.Expect(policy.Status.ObservedGeneration).To(Equal(policy.Generation))
				g.Expect(policy.Status.TypeChecking).NotTo(BeNil())
				g.Expect(policy.Status.TypeChecking.ExpressionWarnings).To(BeEmpty())
			}).Should(Succeed())
		}
	}, SpecTimeout(settle))

	It("allow streams to Pods only in namespaces of the account's host", func(ctx SpecContext) {
		// The Pod does not exist, so a request that passes admission gets NotFound.
		connect := func(user, namespace, subresource string) error {
			GinkgoHelper()
			config, err := fleet.Member("member").RESTConfig(controlplane.Direct)
			Expect(err).NotTo(HaveOccurred())
			config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"tenants"}}
			api, err := kubernetes.NewForConfig(config)
			Expect(err).NotTo(HaveOccurred())
			return api.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name("none").SubResource(subresource).
				Param("command", "true").Param("stdout", "true").Do(ctx).Error()
		}
		hosts := memberAccount + "-host-"
		Eventually(ctx, func() error { return connect(memberAccount, foreign, "exec") }).Should(Satisfy(apierrors.IsForbidden))
		for _, subresource := range []string{"exec", "attach", "portforward"} {
			for _, user := range []string{memberAccount, hosts + someHost} {
				for _, namespace := range []string{made, handed} {
					Expect(connect(user, namespace, subresource)).To(Satisfy(apierrors.IsNotFound), "%s as %s in %s", subresource, user, namespace)
				}
			}
			for user, namespaces := range map[string][]string{
				memberAccount: {foreign, "default", "kube-system", "xylem-system"}, hosts + someHost: {foreign}, hosts + "another": {made, handed, foreign},
			} {
				for _, namespace := range namespaces {
					err := connect(user, namespace, subresource)
					Expect(err).To(Satisfy(apierrors.IsForbidden), "%s as %s in %s", subresource, user, namespace)
					Expect(err).To(MatchError(ContainSubstring("Xylem's account may reach Pods only")))
				}
			}
			Expect(connect("other", foreign, subresource)).To(Satisfy(apierrors.IsNotFound), "the policy must not limit other accounts")
		}
		Expect(connect(memberAccount, made, "proxy")).To(MatchError(ContainSubstring("Xylem's account")))
	}, SpecTimeout(settle))

	It("allow debug containers only in Pods of the account's host, and only within the level baseline", func(ctx SpecContext) {
		debug := func(by client.Client, pod *corev1.Pod, change ...func(*corev1.EphemeralContainer)) error {
			c := corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: unique("debugger"), Image: "busybox:1"}}
			for _, f := range change {
				f(&c)
			}
			Expect(memberAdmin.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
			after := pod.DeepCopy()
			after.Spec.EphemeralContainers = append(after.Spec.EphemeralContainers, c)
			return by.SubResource("ephemeralcontainers").Patch(ctx, after, client.MergeFrom(pod))
		}
		privileged := func(c *corev1.EphemeralContainer) {
			c.SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
		}
		capable := func(c *corev1.EphemeralContainer) {
			c.SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_PTRACE"}}}
		}
		for _, namespace := range []string{made, handed} {
			leaf := leafPod(namespace, func(p *corev1.Pod) { p.Name = unique("debugged") })
			stamped(leaf)
			Expect(account.Create(ctx, leaf)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(memberAdmin.Delete(ctx, leaf)).To(Succeed()) }, NodeTimeout(settle))
			Expect(debug(account, leaf)).To(Succeed())
			Expect(debug(ours, leaf)).To(Succeed())
			Expect(debug(theirs, leaf)).To(MatchError(ContainSubstring("belongs to host another")))
			Expect(debug(account, leaf, privileged)).To(MatchError(ContainSubstring("a container is privileged")))
			Expect(debug(account, leaf, capable)).To(MatchError(ContainSubstring("capabilities.add")))
			By("adding a privileged container as the member's admin, and then another one as Xylem")
			Expect(debug(memberAdmin, leaf, privileged)).To(Succeed())
			Expect(debug(account, leaf)).To(Succeed())
			foreigner := pod(namespace)
			foreigner.Name = unique("foreign")
			Expect(memberAdmin.Create(ctx, foreigner)).To(Succeed())
			Expect(debug(account, foreigner)).To(MatchError(ContainSubstring("may change only objects with its stamp")))
		}
		foreigner := pod(foreign)
		foreigner.Name = unique("foreign")
		Expect(memberAdmin.Create(ctx, foreigner)).To(Succeed())
		Expect(debug(account, foreigner)).To(MatchError(ContainSubstring("may change only objects with its stamp")))
	}, SpecTimeout(settle))

	It("allow resizes only of Pods of the account's host, and only of their resources", func(ctx SpecContext) {
		requesting := func(p *corev1.Pod) {
			p.Name = unique("resized")
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
		}
		resize := func(by client.Client, pod *corev1.Pod, change ...func(*corev1.Pod)) error {
			Expect(memberAdmin.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
			after := pod.DeepCopy()
			cpu := after.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU]
			cpu.Add(resource.MustParse("1m"))
			after.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = cpu
			for _, f := range change {
				f(after)
			}
			return by.SubResource("resize").Patch(ctx, after, client.MergeFrom(pod))
		}
		for _, namespace := range []string{made, handed} {
			leaf := leafPod(namespace, requesting)
			stamped(leaf)
			Expect(account.Create(ctx, leaf)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(memberAdmin.Delete(ctx, leaf)).To(Succeed()) }, NodeTimeout(settle))
			for _, by := range []client.Client{account, ours} {
				Expect(resize(by, leaf)).To(Succeed())
			}
			Expect(resize(theirs, leaf)).To(MatchError(ContainSubstring("belongs to host another")))
			By("trying to change the stamp, the image or the priority with a resize: the API server ignores all but resources")
			Expect(memberAdmin.Get(ctx, client.ObjectKeyFromObject(leaf), leaf)).To(Succeed())
			was := leaf.DeepCopy()
			Expect(resize(account, leaf, func(p *corev1.Pod) {
				p.Labels[v1alpha1.LabelHost], p.Spec.Containers[0].Image, p.Spec.PriorityClassName = "another", "evil:1", "system-node-critical"
			})).To(Succeed())
			Expect(memberAdmin.Get(ctx, client.ObjectKeyFromObject(leaf), leaf)).To(Succeed())
			Expect([]string{leaf.Labels[v1alpha1.LabelHost], leaf.Spec.Containers[0].Image, leaf.Spec.PriorityClassName}).
				To(Equal([]string{was.Labels[v1alpha1.LabelHost], was.Spec.Containers[0].Image, was.Spec.PriorityClassName}))
			Expect(leaf.Spec.Containers[0].Resources).NotTo(Equal(was.Spec.Containers[0].Resources))
		}
		for _, namespace := range []string{made, handed, foreign} {
			foreigner := pod(namespace)
			requesting(foreigner)
			Expect(memberAdmin.Create(ctx, foreigner)).To(Succeed())
			Expect(resize(account, foreigner)).To(MatchError(ContainSubstring("may change only objects with its stamp")))
			Expect(resize(memberAdmin, foreigner)).To(Succeed(), "the policy must not limit other accounts")
		}
	}, SpecTimeout(settle))

	It("allow the account to create stamped objects in its namespaces", func(ctx SpecContext) {
		for _, o := range []client.Object{
			claim(made), claim(handed), leafPod(made), leafPod(handed), leafBudget(made), leafBudget(handed),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: made, Name: "config.xylem-0123abcd"}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: made, Name: "secret.xylem-0123abcd"}, StringData: map[string]string{"a": "b"}},
			newNamespaceOf("new", "baseline"), newNamespaceOf("new", "restricted"),
			&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultNamespace, Name: someHost}},
		} {
			stamped(o)
			for _, by := range []client.Client{account, ours} {
				Expect(by.Create(ctx, o.DeepCopyObject().(client.Object), client.DryRunAll)).To(Succeed(), "%T", o)
			}
			Expect(theirs.Create(ctx, o, client.DryRunAll)).To(MatchError(ContainSubstring("belongs to host another")), "%T", o)
		}
	}, SpecTimeout(settle))

	It("reject writes of one host's account to another host's objects", func(ctx SpecContext) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: made, Name: unique("secret")}}
		stamped(secret)
		Expect(memberAdmin.Create(ctx, secret)).To(Succeed())
		var ns corev1.Namespace
		Expect(memberAdmin.Get(ctx, client.ObjectKey{Name: made}, &ns)).To(Succeed())
		for _, o := range []client.Object{secret, &ns} {
			touch := annotate(v1alpha1.AnnotationRootUID, "newer")
			Expect(changed(ctx, theirs, false, o, touch)).To(MatchError(ContainSubstring("belongs to host another")), "%T", o)
			Expect(theirs.Delete(ctx, o, client.DryRunAll)).To(MatchError(ContainSubstring("belongs to host another")), "%T", o)
			Expect(ours.Delete(ctx, o, client.DryRunAll)).To(Succeed(), "%T", o)
		}
	}, SpecTimeout(settle))

	DescribeTable("limit the account's Pods to the level baseline, unless the member's admin allows more",
		func(ctx SpecContext, change func(*corev1.Pod), allowed bool) {
			opened := newNamespace(ctx, "open", func(o client.Object) {
				label(v1alpha1.LabelHost, someHost)(o)
				label("pod-security.kubernetes.io/enforce", "privileged")(o)
			})
			for namespace, open := range map[string]bool{handed: false, opened: true} {
				p := leafPod(namespace, change)
				stamped(p)
				err := account.Create(ctx, p, client.DryRunAll)
				if allowed || open {
					Expect(err).NotTo(HaveOccurred())
				} else {
					Expect(err).To(MatchError(And(ContainSubstring("xylem-pods"), ContainSubstring("exceeds the Pod Security level baseline"))))
				}
			}
		},
		Entry("a plain container", SpecTimeout(settle), func(*corev1.Pod) {}, true),
		Entry("a container that drops and adds harmless capabilities", SpecTimeout(settle), confined(func(c *corev1.SecurityContext) {
			c.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_BIND_SERVICE"}}
		}), true),
		Entry("the node's network", SpecTimeout(settle), func(p *corev1.Pod) { p.Spec.HostNetwork = true }, false),
		Entry("the node's processes", SpecTimeout(settle), func(p *corev1.Pod) { p.Spec.HostPID = true }, false),
		Entry("the node's IPC", SpecTimeout(settle), func(p *corev1.Pod) { p.Spec.HostIPC = true }, false),
		Entry("a hostPath volume", SpecTimeout(settle), func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
		}, false),
		Entry("a privileged container", SpecTimeout(settle), confined(func(c *corev1.SecurityContext) { c.Privileged = new(true) }), false),
		Entry("a privileged init container", SpecTimeout(settle), func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "example/init", SecurityContext: &corev1.SecurityContext{Privileged: new(true)}}}
		}, false),
		Entry("an additional capability", SpecTimeout(settle), confined(func(c *corev1.SecurityContext) {
			c.Capabilities = &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}}
		}), false),
		Entry("a host port", SpecTimeout(settle), func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
		}, false),
		Entry("a probe to another network host", SpecTimeout(settle), func(p *corev1.Pod) {
			p.Spec.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80), Host: "10.0.0.1"}}}
		}, false),
		Entry("a lifecycle hook to another network host", SpecTimeout(settle), func(p *corev1.Pod) {
			p.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80), Host: "10.0.0.1"}}}
		}, false),
		Entry("a disabled AppArmor profile", SpecTimeout(settle), func(p *corev1.Pod) {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}}
		}, false),
		Entry("SELinux options", SpecTimeout(settle), func(p *corev1.Pod) {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Type: "spc_t"}}
		}, false),
		Entry("a disabled seccomp profile", SpecTimeout(settle), func(p *corev1.Pod) {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}}
		}, false),
		Entry("an unsafe sysctl", SpecTimeout(settle), func(p *corev1.Pod) {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "kernel.msgmax", Value: "1"}}}
		}, false),
		Entry("an unmasked /proc", SpecTimeout(settle), func(p *corev1.Pod) {
			p.Spec.HostUsers = new(false)
			confined(func(c *corev1.SecurityContext) { c.ProcMount = new(corev1.UnmaskedProcMount) })(p)
		}, false),
	)

	It("reject changes by the account to the member's own budgets, evictions, and budgets that it opens to other Pods", func(ctx SpecContext) {
		own, leaf := leafBudget(made), leafBudget(made)
		own.Name, leaf.Name = unique("own"), unique("leaf")
		stamped(leaf)
		Expect(memberAdmin.Create(ctx, own)).To(Succeed())
		Expect(ours.Create(ctx, leaf)).To(Succeed())
		for _, b := range []client.Object{own, leaf} {
			DeferCleanup(func(ctx SpecContext) { Expect(memberAdmin.Delete(ctx, b)).To(Succeed()) }, NodeTimeout(settle))
		}
		loosen := func(o client.Object) { o.(*policyv1.PodDisruptionBudget).Spec.MinAvailable = new(intstr.FromInt32(0)) }
		open := func(o client.Object) {
			o.(*policyv1.PodDisruptionBudget).Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
		}
		Expect(changed(ctx, ours, false, own, loosen)).To(MatchError(ContainSubstring("may change only objects with its stamp")))
		Expect(ours.Delete(ctx, own, client.DryRunAll)).To(MatchError(ContainSubstring("may delete only objects with its stamp")))
		Expect(changed(ctx, ours, false, leaf, open)).To(MatchError(ContainSubstring("select only the host's Pods")))
		Expect(changed(ctx, theirs, false, leaf, loosen)).To(MatchError(ContainSubstring("belongs to host another")))
		Expect(changed(ctx, ours, false, leaf, loosen)).To(Succeed())
		Expect(changed(ctx, other, false, leaf, annotate(v1alpha1.AnnotationRootUID, "newer"))).To(MatchError(ContainSubstring("stamps.xylem.io")))
		p := leafPod(made, func(p *corev1.Pod) { p.Name = unique("evicted") })
		stamped(p)
		Expect(ours.Create(ctx, p)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(memberAdmin.Delete(ctx, p)).To(Succeed()) }, NodeTimeout(settle))
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: made, Name: p.Name}}
		Expect(ours.SubResource("eviction").Create(ctx, p, eviction)).To(MatchError(ContainSubstring("may not write to this resource")))
	}, SpecTimeout(settle))

	It("allow the account only the PriorityClasses that the member's admin grants, and the default class", func(ctx SpecContext) {
		class := func(prefix string, standard bool) string {
			c := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: unique(prefix)}, Value: 1000, GlobalDefault: standard}
			Expect(memberAdmin.Create(ctx, c)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(memberAdmin.Delete(ctx, c)).To(Succeed()) }, NodeTimeout(settle))
			return c.Name
		}
		granted, ungranted, standard := class("granted", false), class("ungranted", false), class("standard", true)
		for _, o := range usePermission("priorityclasses", granted) {
			Expect(memberAdmin.Create(ctx, o)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(memberAdmin.Delete(ctx, o)).To(Succeed()) }, NodeTimeout(settle))
		}
		create := func(class string) error {
			p := leafPod(made, func(p *corev1.Pod) { p.Spec.PriorityClassName = class })
			stamped(p)
			return ours.Create(ctx, p, client.DryRunAll)
		}
		for name, allowed := range map[string]bool{granted: true, ungranted: false, standard: true, "": true} {
			if allowed {
				Eventually(ctx, func() error { return create(name) }).Should(Succeed(), name)
				continue
			}
			Eventually(ctx, func() error { return create(name) }).Should(MatchError(And(
				ContainSubstring("xylem-priorities"), ContainSubstring(`may not use PriorityClass "`+name), ContainSubstring("priorityclasses.xylem.io"))))
		}
		Expect(create("absent")).To(MatchError(ContainSubstring("no PriorityClass with name absent was found")))
		Expect(create("system-node-critical")).To(MatchError(ContainSubstring("Xylem")))
		p := leafPod(foreign, func(p *corev1.Pod) { p.Spec.PriorityClassName = ungranted })
		Expect(other.Create(ctx, p, client.DryRunAll)).To(Succeed(), "another user's Pod")
	}, SpecTimeout(settle))

	It("allow the account to loosen Pod Security only if the member's admin allows it", func(ctx SpecContext) {
		loose := newNamespaceOf("new", "privileged")
		stamped(loose)
		p := leafPod(handed, func(p *corev1.Pod) { p.Spec.HostNetwork = true })
		stamped(p)
		Expect(ours.Create(ctx, loose.DeepCopy(), client.DryRunAll)).To(MatchError(ContainSubstring("podsecurity.xylem.io")))
		for _, o := range usePermission("podsecurity", "privileged") {
			Expect(memberAdmin.Create(ctx, o)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(memberAdmin.Delete(ctx, o)).To(Succeed()) }, NodeTimeout(settle))
		}
		for _, o := range []client.Object{loose, p} {
			Eventually(ctx, func(ctx context.Context) error {
				return ours.Create(ctx, o.DeepCopyObject().(client.Object), client.DryRunAll)
			}).Should(Succeed(), "%T", o)
			Expect(account.Create(ctx, o, client.DryRunAll)).NotTo(Succeed(), "%T by an account without this permission", o)
		}
	}, SpecTimeout(settle))

	It("allow copies of shared volumes only for claims in namespaces for which the member's admin shares the driver", func(ctx SpecContext) {
		copied := func(namespace string) *corev1.PersistentVolume {
			pv := volume("xylem-copy-1")
			pv.Spec.CSI.Driver, pv.Spec.NodeAffinity = "shared.example.com", nil
			pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany, corev1.ReadOnlyMany}
			pv.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: namespace, Name: "claim", UID: "claim-uid"}
			for _, stamp := range []func(client.Object){
				label(v1alpha1.LabelHost, someHost), label(v1alpha1.LabelManagedBy, v1alpha1.ManagedByValue),
				annotate(v1alpha1.AnnotationCopyOf, "pvc-1"), annotate(v1alpha1.AnnotationCopyOfUID, "pv-uid"), annotate(v1alpha1.AnnotationCopyFor, "root-uid"),
			} {
				stamp(pv)
			}
			return pv
		}
		unshared := MatchError(And(ContainSubstring("xylem-account"), ContainSubstring(`"share" "drivers.xylem.io"`)))
		Expect(ours.Create(ctx, copied(made), client.DryRunAll)).To(unshared)
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: made, Name: "sharing"}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"xylem.io"}, Resources: []string{"drivers"}, ResourceNames: []string{"shared.example.com"}, Verbs: []string{"share"},
		}}}
		binding := &rbacv1.RoleBinding{
			ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: memberAccount + "-host-" + someHost}},
		}
		for _, o := range []client.Object{role, binding} {
			Expect(memberAdmin.Create(ctx, o)).To(Succeed())
		}
		Eventually(ctx, func(ctx context.Context) error { return ours.Create(ctx, copied(made), client.DryRunAll) }).Should(Succeed())
		for _, namespace := range []string{handed, foreign} {
			Expect(ours.Create(ctx, copied(namespace), client.DryRunAll)).To(unshared)
		}
		Expect(account.Create(ctx, copied(made), client.DryRunAll)).To(unshared, "an account without this permission")
		Expect(theirs.Create(ctx, copied(made), client.DryRunAll)).To(MatchError(ContainSubstring("belongs to host another")))
	}, SpecTimeout(settle))

	It("allow the account to request only its own next token", func(ctx SpecContext) {
		other := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultNamespace, Name: "other"}}
		Expect(memberAdmin.Create(ctx, other)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(memberAdmin.Delete(ctx, other)).To(Succeed()) }, NodeTimeout(settle))
		self := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultNamespace, Name: "xylem"}}
		ask := func(of *corev1.ServiceAccount, life time.Duration, bound *authenticationv1.BoundObjectReference) error {
			return account.SubResource("token").Create(ctx, of, &authenticationv1.TokenRequest{
				Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(life.Seconds())), BoundObjectRef: bound},
			})
		}
		const day = 24 * time.Hour
		Expect(ask(self, day, nil)).To(Succeed())
		Expect(ask(self, 7*day, nil)).To(Succeed())
		denied := MatchError(And(ContainSubstring("xylem-account"), ContainSubstring("only its own tokens, and only tokens that are valid for no more than a week")))
		Expect(ask(other, day, nil)).To(denied)
		Expect(ask(self, 7*day+time.Second, nil)).To(denied)
		Expect(ask(self, day, &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: "s"})).To(denied)
	}, SpecTimeout(settle))

	DescribeTable("reject the creation of all other objects", func(ctx SpecContext, object func() client.Object, stamp func(client.Object)) {
		o := object()
		stamp(o)
		Expect(account.Create(ctx, o, client.DryRunAll)).To(MatchError(And(
			MatchRegexp("'xylem-(account|priorities)'"), ContainSubstring("denied request")))) // the API server returns one of several denials
	},
		Entry("a claim without a stamp", SpecTimeout(settle), func() client.Object { return claim(made) }, unstamped),
		Entry("a claim with an incomplete stamp", SpecTimeout(settle), func() client.Object { return claim(made) }, label(v1alpha1.LabelHost, someHost)),
		Entry("a claim whose stamp names another root", SpecTimeout(settle), func() client.Object { return claim(made) }, func(o client.Object) {
			stamped(o)
			annotate(v1alpha1.AnnotationRoot, "victim/claim")(o)
		}),
		Entry("a claim with a stamp for a different host than its namespace's", SpecTimeout(settle), func() client.Object { return claim(made) }, func(o client.Object) {
			stamped(o)
			label(v1alpha1.LabelHost, "another")(o)
		}),
		Entry("a claim in a foreign namespace", SpecTimeout(settle), func() client.Object { return claim(foreign) }, stamped),
		Entry("a Pod in a foreign namespace", SpecTimeout(settle), func() client.Object { return leafPod(foreign) }, stamped),
		Entry("a Pod in kube-system", SpecTimeout(settle), func() client.Object { return leafPod("kube-system") }, stamped),
		Entry("a Secret in kube-public", SpecTimeout(settle), func() client.Object {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "s"}}
		}, stamped),
		Entry("a Secret in Xylem's own namespace", SpecTimeout(settle), func() client.Object {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultNamespace, Name: "s"}}
		}, stamped),
		Entry("a Pod in default, which was not handed over", SpecTimeout(settle), func() client.Object { return leafPod("default") }, stamped),
		Entry("a Pod with the member's token", SpecTimeout(settle), func() client.Object { return pod(made) }, stamped),
		Entry("a Pod that projects the member's token", SpecTimeout(settle), func() client.Object {
			return leafPod(made, func(p *corev1.Pod) {
				p.Spec.Volumes = []corev1.Volume{{Name: "t", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
					Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "t"}}},
				}}}}
			})
		}, stamped),
		Entry("a Pod with a generic ephemeral volume, whose claim would lack the stamp", SpecTimeout(settle), func() client.Object {
			return leafPod(made, func(p *corev1.Pod) {
				p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
					VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claim(made).Spec},
				}}}}
			})
		}, stamped),
		Entry("a budget in a foreign namespace", SpecTimeout(settle), func() client.Object { return leafBudget(foreign) }, stamped),
		Entry("a budget without a stamp", SpecTimeout(settle), func() client.Object { return leafBudget(made) }, unstamped),
		Entry("a budget for the member's own Pods", SpecTimeout(settle), func() client.Object {
			b := leafBudget(made)
			b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
			return b
		}, stamped),
		Entry("a budget for all Pods", SpecTimeout(settle), func() client.Object {
			b := leafBudget(made)
			b.Spec.Selector = &metav1.LabelSelector{}
			return b
		}, stamped),
		Entry("a budget for the Pods of another host", SpecTimeout(settle), func() client.Object {
			b := leafBudget(made)
			b.Spec.Selector.MatchLabels[v1alpha1.LabelHost] = "another"
			return b
		}, stamped),
		Entry("a budget with maxUnavailable", SpecTimeout(settle), func() client.Object {
			b := leafBudget(made)
			b.Spec.MinAvailable, b.Spec.MaxUnavailable = nil, new(intstr.FromInt32(0))
			return b
		}, stamped),
		Entry("a Pod that preempts the member's workloads", SpecTimeout(settle), func() client.Object {
			return leafPod(made, func(p *corev1.Pod) { p.Spec.PriorityClassName = "system-cluster-critical" })
		}, stamped),
		Entry("a claim with an owner reference", SpecTimeout(settle), func() client.Object { return claim(made) }, func(o client.Object) {
			stamped(o)
			o.SetOwnerReferences(nobody)
		}),
		Entry("a Pod with a nodeName", SpecTimeout(settle), func() client.Object {
			return leafPod(made, func(p *corev1.Pod) { p.Spec.NodeName = "control-plane" })
		}, stamped),
		Entry("a Secret with a service account token", SpecTimeout(settle), func() client.Object {
			return &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: made, Name: "s.xylem-0123abcd", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
				Type:       corev1.SecretTypeServiceAccountToken,
			}
		}, stamped),
		Entry("a Secret without the name suffix of Xylem's copies", SpecTimeout(settle), func() client.Object {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: made, Name: "secret"}}
		}, stamped),
		Entry("a volume", SpecTimeout(settle), func() client.Object { return volume("new") }, stamped),
		Entry("a namespace without a stamp", SpecTimeout(settle), func() client.Object {
			return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "new"}}
		}, unstamped),
		Entry("a namespace with the name of a system namespace", SpecTimeout(settle), func() client.Object { return newNamespaceOf("kube-new", "baseline") }, stamped),
		Entry("a namespace with the name of a service mesh", SpecTimeout(settle), func() client.Object { return newNamespaceOf("istio-system", "baseline") }, stamped),
		Entry("a namespace with the name of a component", SpecTimeout(settle), func() client.Object { return newNamespaceOf("cert-manager", "baseline") }, stamped),
		Entry("a namespace without a Pod Security level", SpecTimeout(settle), func() client.Object {
			return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "new"}}
		}, stamped),
		Entry("a privileged namespace", SpecTimeout(settle), func() client.Object { return newNamespaceOf("new", "privileged") }, stamped),
		Entry("a namespace that pins an old version of Pod Security", SpecTimeout(settle), func() client.Object { return newNamespaceOf("new", "baseline") }, func(o client.Object) {
			stamped(o)
			label("pod-security.kubernetes.io/enforce-version", "v1.0")(o)
		}),
		Entry("a namespace with another controller's label", SpecTimeout(settle), func() client.Object { return newNamespaceOf("new", "baseline") }, func(o client.Object) {
			stamped(o)
			label("istio-injection", "enabled")(o)
		}),
		Entry("a namespace that cannot be deleted", SpecTimeout(settle), func() client.Object { return newNamespaceOf("new", "baseline") }, func(o client.Object) {
			stamped(o)
			o.(*corev1.Namespace).Spec.Finalizers = []corev1.FinalizerName{"example.com/hold"}
		}),
		Entry("a Lease with another name", SpecTimeout(settle), func() client.Object {
			return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultNamespace, Name: "other"}}
		}, stamped),
		Entry("the Lease of a host's leader election", SpecTimeout(settle), func() client.Object {
			return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultNamespace, Name: "xylem-manager"}}
		}, func(o client.Object) {
			stamped(o)
			label(v1alpha1.LabelHost, "xylem-manager")(o)
		}),
		Entry("a Lease in another namespace", SpecTimeout(settle), func() client.Object {
			return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-node-lease", Name: someHost}}
		}, stamped),
		Entry("a service account", SpecTimeout(settle), func() client.Object {
			return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: made, Name: "new"}}
		}, stamped),
		Entry("a role", SpecTimeout(settle), func() client.Object {
			return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "new"}}
		}, stamped),
	)

	DescribeTable("allow only Services and EndpointSlices that open the member to nobody",
		func(ctx SpecContext, object func() client.Object, allowed bool) {
			o := object()
			if o.GetAnnotations()[v1alpha1.AnnotationRoot] == "" {
				stamped(o)
			}
			err := account.Create(ctx, o, client.DryRunAll)
			if allowed {
				Expect(err).NotTo(HaveOccurred())
			} else {
				Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
			}
		},
		Entry("a Service", SpecTimeout(settle), leafService(&made), true),
		Entry("a headless Service", SpecTimeout(settle), leafService(&made, func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone }), true),
		Entry("a Service in a namespace that was handed over", SpecTimeout(settle), leafService(&handed), true),
		Entry("a Service in a foreign namespace", SpecTimeout(settle), leafService(&foreign), false),
		Entry("a Service with a node port", SpecTimeout(settle), leafService(&made, func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort }), false),
		Entry("a Service with a load balancer", SpecTimeout(settle), leafService(&made, func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeLoadBalancer }), false),
		Entry("a Service with external IPs", SpecTimeout(settle), leafService(&made, func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"192.0.2.1"} }), false),
		Entry("a Service with an external name", SpecTimeout(settle), leafService(&made, func(s *corev1.Service) {
			s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"}
		}), false),
		Entry("a Service that gets a name in the member's DNS zone", SpecTimeout(settle), leafService(&made, func(s *corev1.Service) {
			annotate("external-dns.alpha.kubernetes.io/hostname", "www.example.com")(s)
		}), false),
		Entry("a Service that the member's proxies ignore", SpecTimeout(settle), leafService(&made, func(s *corev1.Service) {
			label("service.kubernetes.io/service-proxy-name", "other")(s)
		}), false),
		Entry("an EndpointSlice", SpecTimeout(settle), leafSlice(&made, "10.1.2.3"), true),
		Entry("an EndpointSlice for IPv6", SpecTimeout(settle), leafSlice(&made, "2001:db8::1"), true),
		Entry("an EndpointSlice with as many endpoints as the API allows", SpecTimeout(settle), leafSlice(&made, manyAddresses()...), true),
		Entry("an EndpointSlice in a foreign namespace", SpecTimeout(settle), leafSlice(&foreign, "10.1.2.3"), false),
		Entry("an EndpointSlice with a metadata service", SpecTimeout(settle), leafSlice(&made, "10.1.2.3", "100.100.100.200"), false),
		Entry("an EndpointSlice with Azure's wire server", SpecTimeout(settle), leafSlice(&made, "168.63.129.16"), false),
		Entry("an EndpointSlice with AWS's metadata service for IPv6", SpecTimeout(settle), leafSlice(&made, "fd00:ec2::254"), false),
		Entry("an EndpointSlice with an address that embeds IPv4", SpecTimeout(settle), leafSlice(&made, "64:ff9b::a9fe:a9fe"), false),
		Entry("an EndpointSlice that the member's controllers manage", SpecTimeout(settle), func() client.Object {
			slice := leafSlice(&made, "10.1.2.3")()
			label(discoveryv1.LabelManagedBy, "endpointslice-controller.k8s.io")(slice)
			return slice
		}, false),
		Entry("an EndpointSlice of names", SpecTimeout(settle), func() client.Object {
			slice := leafSlice(&made, "example.com")()
			slice.(*discoveryv1.EndpointSlice).AddressType = discoveryv1.AddressTypeFQDN
			return slice
		}, false),
		Entry("an EndpointSlice that names a Pod", SpecTimeout(settle), func() client.Object {
			slice := leafSlice(&made, "10.1.2.3")()
			slice.(*discoveryv1.EndpointSlice).Endpoints[0].TargetRef = &corev1.ObjectReference{Kind: "Pod", Namespace: made, Name: "other"}
			return slice
		}, false),
	)

	It("protect the member's own Services and EndpointSlices, also those of leaf Services", func(ctx SpecContext) {
		leaf := leafService(&made)().(*corev1.Service)
		stamped(leaf)
		Expect(account.Create(ctx, leaf)).To(Succeed())
		Expect(account.Patch(ctx, leaf.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"publishNotReadyAddresses":true}}`)))).To(Succeed())
		for _, change := range []string{`{"spec":{"type":"NodePort"}}`, `{"spec":{"externalIPs":["192.0.2.1"]}}`, `{"metadata":{"annotations":{"example.com/a":"b"}}}`} {
			Expect(account.Patch(ctx, leaf.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(change)))).To(MatchError(apierrors.IsForbidden, "IsForbidden"), change)
		}
		// The member's controller copies the labels of the Service.
		own := leafSlice(&made, "10.1.2.3")().(*discoveryv1.EndpointSlice)
		label(v1alpha1.LabelHost, someHost)(own)
		label(v1alpha1.LabelManagedBy, v1alpha1.ManagedByValue)(own)
		label(discoveryv1.LabelManagedBy, "endpointslice-controller.k8s.io")(own)
		Expect(other.Create(ctx, own)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(memberAdmin.Delete(ctx, own)).To(Succeed()) }, NodeTimeout(settle))
		theirs := leafService(&made)().(*corev1.Service)
		Expect(other.Create(ctx, theirs)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(memberAdmin.Delete(ctx, theirs)).To(Succeed()) }, NodeTimeout(settle))
		for _, o := range []client.Object{own, theirs} {
			Expect(account.Delete(ctx, o)).To(MatchError(apierrors.IsForbidden, "IsForbidden"))
			Expect(account.Patch(ctx, o.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+discoveryv1.LabelManagedBy+`":"`+v1alpha1.EndpointSliceManager+`"}}}`)))).
				To(MatchError(apierrors.IsForbidden, "IsForbidden"))
		}
		forged := leafService(&made)()
		stamped(forged)
		Expect(other.Create(ctx, forged)).To(MatchError(ContainSubstring("stamps.xylem.io")))
		Expect(account.Delete(ctx, leaf)).To(Succeed())
	}, SpecTimeout(settle))

	It("allow the account to change and delete only objects with its stamp", func(ctx SpecContext) {
		for _, tc := range []struct {
			object client.Object
			stamp  func(client.Object)
			ours   bool
		}{
			{claim(made), stamped, true},
			{claim(foreign), unstamped, false},
			{claim(handed), label(v1alpha1.LabelHost, someHost), false},
			{leafPod(made), stamped, true},
			{leafPod(foreign), unstamped, false},
		} {
			tc.stamp(tc.object)
			Expect(memberAdmin.Create(ctx, tc.object)).To(Succeed())
			forge := func(o client.Object) { stamped(o); annotate("example.com/a", "b")(o) }
			err := changed(ctx, account, false, tc.object, forge)
			Expect(changed(ctx, account, true, tc.object, forge)).NotTo(Succeed(), "the account must not change the status")
			deleted := account.Delete(ctx, tc.object, client.DryRunAll)
			for _, err := range []error{err, deleted} {
				if tc.ours {
					Expect(err).NotTo(HaveOccurred(), "%T in %s", tc.object, tc.object.GetNamespace())
				} else {
					Expect(err).To(MatchError(ContainSubstring("objects with its stamp")))
				}
			}
		}
		By("setting an owner, so that the garbage collector deletes an object")
		fence := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultNamespace, Name: someHost}}
		stamped(fence)
		Expect(memberAdmin.Create(ctx, fence)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(memberAdmin.Delete(ctx, fence)).To(Succeed()) }, NodeTimeout(settle))
		Expect(changed(ctx, account, false, fence, func(o client.Object) { o.SetOwnerReferences(nobody) })).To(MatchError(ContainSubstring("owner")))
		By("removing labels and annotations that the admin set on a namespace")
		var kept corev1.Namespace
		Expect(memberAdmin.Get(ctx, client.ObjectKey{Name: made}, &kept)).To(Succeed())
		for _, theirs := range []func(string) func(client.Object){
			func(value string) func(client.Object) { return label("example.com/quota", value) },
			func(value string) func(client.Object) { return annotate("example.com/quota", value) },
		} {
			Expect(changed(ctx, memberAdmin, false, kept.DeepCopy(), theirs("small"))).To(Succeed())
			Expect(memberAdmin.Get(ctx, client.ObjectKey{Name: made}, &kept)).To(Succeed())
			Expect(changed(ctx, account, false, &kept, theirs(""))).To(MatchError(ContainSubstring("no other labels or annotations")))
		}
		By("adding a finalizer to a namespace, so that it can never be deleted")
		Expect(changed(ctx, account, false, &kept, func(o client.Object) { o.SetFinalizers([]string{"example.com/hold"}) })).To(
			MatchError(ContainSubstring("may not change the finalizers of namespaces")))
		for name, ours := range map[string]bool{made: true, handed: false, foreign: false, "kube-system": false, v1alpha1.DefaultNamespace: false} {
			var ns corev1.Namespace
			Expect(memberAdmin.Get(ctx, client.ObjectKey{Name: name}, &ns)).To(Succeed())
			err := changed(ctx, account, false, &ns, label("pod-security.kubernetes.io/enforce", "baseline"))
			Expect(changed(ctx, account, false, &ns, label("pod-security.kubernetes.io/enforce", "privileged"))).NotTo(Succeed())
			deleted := account.Delete(ctx, &ns, client.DryRunAll)
			Expect(err == nil).To(Equal(ours), "%s: %v", name, err)
			Expect(deleted == nil).To(Equal(ours), "%s: %v", name, deleted)
		}
	}, SpecTimeout(settle))

	DescribeTable("allow the account only to stamp, retain and release volumes",
		func(ctx SpecContext, phase corev1.PersistentVolumePhase, before, change func(*corev1.PersistentVolume), allowed bool) {
			pv := volume(unique("pv"))
			pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
			root := claim(made)
			root.Name, root.Spec.VolumeName = pv.Name, pv.Name
			pv.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: root.Namespace, Name: root.Name}
			before(pv)
			root.Namespace = pv.Spec.ClaimRef.Namespace
			Expect(memberAdmin.Create(ctx, pv)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(memberAdmin.Delete(ctx, pv)).To(Succeed()) }, NodeTimeout(settle))
			Expect(memberAdmin.Create(ctx, root)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(memberAdmin.Delete(ctx, root))).To(Succeed()) }, NodeTimeout(settle))
			become := func(phase corev1.PersistentVolumePhase) {
				Eventually(ctx, func(ctx context.Context) (corev1.PersistentVolumePhase, error) {
					return pv.Status.Phase, memberAdmin.Get(ctx, client.ObjectKeyFromObject(pv), pv)
				}).Should(Equal(phase))
			}
			become(corev1.VolumeBound)
			if phase == corev1.VolumeReleased {
				Expect(memberAdmin.Delete(ctx, root)).To(Succeed())
				become(phase)
			}
			next := pv.DeepCopy()
			change(next)
			Expect(theirs.Patch(ctx, next.DeepCopy(), client.MergeFrom(pv), client.DryRunAll)).NotTo(Succeed(), "another host's account must not change the volume")
			err := account.Patch(ctx, next, client.MergeFrom(pv), client.DryRunAll)
			if allowed {
				Expect(err).NotTo(HaveOccurred())
				return
			}
			Expect(err).To(MatchError(ContainSubstring("Xylem's account")))
		},
		Entry("stamp and set Retain", SpecTimeout(settle), corev1.VolumeBound, deleted, held("Delete"), true),
		Entry("stamp a volume that its provisioner retains", SpecTimeout(settle), corev1.VolumeBound, plainVolume, held("Retain"), true),
		Entry("stamp an unused volume", SpecTimeout(settle), corev1.VolumeReleased, plainVolume, held("Retain"), false),
		Entry("record a wrong policy", SpecTimeout(settle), corev1.VolumeBound, plainVolume, held("Delete"), false),
		Entry("stamp for another claim", SpecTimeout(settle), corev1.VolumeBound, deleted, func(p *corev1.PersistentVolume) {
			held("Delete")(p)
			annotate(v1alpha1.AnnotationRoot, p.Spec.ClaimRef.Namespace+"/another")(p)
		}, false),
		Entry("stamp a volume of a system namespace", SpecTimeout(settle), corev1.VolumeBound, func(p *corev1.PersistentVolume) {
			deleted(p)
			p.Spec.ClaimRef.Namespace = "kube-system"
		}, held("Delete"), false),
		Entry("stamp a volume of Xylem's own namespace", SpecTimeout(settle), corev1.VolumeBound, func(p *corev1.PersistentVolume) {
			deleted(p)
			p.Spec.ClaimRef.Namespace = v1alpha1.DefaultNamespace
		}, held("Delete"), false),
		Entry("set the claimRef to a claim in a system namespace", SpecTimeout(settle), corev1.VolumeReleased, held("Delete"), func(p *corev1.PersistentVolume) {
			p.Spec.ClaimRef.Namespace = "kube-system"
			held("Delete")(p)
		}, false),
		Entry("set the claimRef to a claim in Xylem's own namespace", SpecTimeout(settle), corev1.VolumeReleased, held("Delete"), func(p *corev1.PersistentVolume) {
			p.Spec.ClaimRef.Namespace = v1alpha1.DefaultNamespace
			held("Delete")(p)
		}, false),
		Entry("stamp without the policy", SpecTimeout(settle), corev1.VolumeBound, plainVolume, func(p *corev1.PersistentVolume) {
			held("Retain")(p)
			annotate(v1alpha1.AnnotationReclaimPolicy, "")(p)
		}, false),
		Entry("set Retain without stamping the volume", SpecTimeout(settle), corev1.VolumeBound, deleted, func(p *corev1.PersistentVolume) {
			p.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		}, false),
		Entry("stamp a volume of another host", SpecTimeout(settle), corev1.VolumeBound, func(p *corev1.PersistentVolume) {
			held("Retain")(p)
			label(v1alpha1.LabelHost, "yet-another")(p)
		}, held("Retain"), false),
		Entry("stamp the volume again for the next claim with the same name", SpecTimeout(settle), corev1.VolumeBound, held("Delete"), annotated(v1alpha1.AnnotationRootUID, "newer"), true),
		Entry("set Delete on a volume with original policy Delete", SpecTimeout(settle), corev1.VolumeReleased, held("Delete"), deleted, true),
		Entry("set Delete on a volume with original policy Retain", SpecTimeout(settle), corev1.VolumeReleased, held("Retain"), deleted, false),
		Entry("change the recorded policy from Retain to Delete", SpecTimeout(settle), corev1.VolumeReleased, held("Retain"), annotated(v1alpha1.AnnotationReclaimPolicy, "Delete"), false),
		Entry("set Delete on a foreign volume", SpecTimeout(settle), corev1.VolumeBound, plainVolume, func(p *corev1.PersistentVolume) {
			held("Delete")(p)
			deleted(p)
		}, false),
		Entry("set the claimRef to the next claim with the same name", SpecTimeout(settle), corev1.VolumeReleased, held("Delete"), func(p *corev1.PersistentVolume) {
			p.Spec.ClaimRef.UID = "newer"
			annotate(v1alpha1.AnnotationRootUID, "newer")(p)
		}, true),
		Entry("set the claimRef to another claim, which the stamp names", SpecTimeout(settle), corev1.VolumeReleased, held("Delete"), pointed("some"), true),
		Entry("set the claimRef to a claim that the stamp does not name", SpecTimeout(settle), corev1.VolumeReleased, held("Delete"), func(p *corev1.PersistentVolume) {
			pointed("some")(p)
			annotate(v1alpha1.AnnotationRoot, p.Spec.ClaimRef.Namespace+"/other")(p)
		}, false),
		Entry("set a claimRef without a UID", SpecTimeout(settle), corev1.VolumeReleased, held("Delete"), func(p *corev1.PersistentVolume) {
			pointed("some")(p)
			p.Spec.ClaimRef.UID = ""
		}, false),
		Entry("set the claimRef of a volume in use", SpecTimeout(settle), corev1.VolumeBound, held("Delete"), pointed("some"), false),
		Entry("set the claimRef of a foreign volume", SpecTimeout(settle), corev1.VolumeReleased, plainVolume, func(p *corev1.PersistentVolume) {
			held("Retain")(p)
			pointed("some")(p)
		}, false),
		Entry("remove the claimRef", SpecTimeout(settle), corev1.VolumeReleased, held("Delete"), func(p *corev1.PersistentVolume) { p.Spec.ClaimRef = nil }, false),
		Entry("increase the capacity", SpecTimeout(settle), corev1.VolumeBound, held("Delete"), func(p *corev1.PersistentVolume) {
			p.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("2Gi")
		}, false),
		Entry("change the mount options", SpecTimeout(settle), corev1.VolumeBound, held("Delete"), func(p *corev1.PersistentVolume) {
			p.Spec.MountOptions = []string{"suid"}
		}, false),
		Entry("change the class", SpecTimeout(settle), corev1.VolumeBound, held("Delete"), func(p *corev1.PersistentVolume) {
			p.Spec.StorageClassName = "other"
		}, false),
		Entry("remove the stamp", SpecTimeout(settle), corev1.VolumeBound, held("Delete"), func(p *corev1.PersistentVolume) { p.Labels = nil }, false),
		Entry("change other labels", SpecTimeout(settle), corev1.VolumeBound, held("Delete"), func(p *corev1.PersistentVolume) { label("example.com/a", "b")(p) }, false),
		Entry("change other annotations", SpecTimeout(settle), corev1.VolumeBound, held("Delete"), annotated("pv.kubernetes.io/provisioned-by", "other"), false),
		Entry("set an owner reference", SpecTimeout(settle), corev1.VolumeBound, held("Delete"), func(p *corev1.PersistentVolume) {
			p.OwnerReferences = nobody
		}, false),
		Entry("stamp the volume and set an owner reference", SpecTimeout(settle), corev1.VolumeBound, plainVolume, func(p *corev1.PersistentVolume) {
			held("Retain")(p)
			p.OwnerReferences = nobody
		}, false),
		Entry("add a Secret reference for the driver", SpecTimeout(settle), corev1.VolumeBound, held("Delete"), func(p *corev1.PersistentVolume) {
			p.Spec.CSI.ControllerExpandSecretRef = &corev1.SecretReference{Namespace: "kube-system", Name: "any"}
		}, false),
		Entry("change finalizers", SpecTimeout(settle), corev1.VolumeBound, held("Delete"), func(p *corev1.PersistentVolume) {
			p.Finalizers = append(p.Finalizers, "example.com/hold")
		}, false),
	)

	DescribeTable("allow the account to stamp an unclaimed volume only with the consent of the member's admin",
		func(ctx SpecContext, phase corev1.PersistentVolumePhase, before, change func(*corev1.PersistentVolume), allowed bool) {
			pv := volume(unique("pv"))
			pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
			if phase != corev1.VolumeAvailable {
				user := claim(made)
				user.Name, user.Spec.VolumeName = pv.Name, pv.Name
				pv.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: user.Namespace, Name: user.Name}
				Expect(memberAdmin.Create(ctx, user)).To(Succeed())
				DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(memberAdmin.Delete(ctx, user))).To(Succeed()) }, NodeTimeout(settle))
			}
			before(pv)
			Expect(memberAdmin.Create(ctx, pv)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(memberAdmin.Delete(ctx, pv)).To(Succeed()) }, NodeTimeout(settle))
			become := func(phase corev1.PersistentVolumePhase) {
				Eventually(ctx, func(ctx context.Context) (corev1.PersistentVolumePhase, error) {
					return pv.Status.Phase, memberAdmin.Get(ctx, client.ObjectKeyFromObject(pv), pv)
				}).Should(Equal(phase))
			}
			if phase == corev1.VolumeReleased {
				become(corev1.VolumeBound)
				Expect(memberAdmin.Delete(ctx, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: made, Name: pv.Name}})).To(Succeed())
			}
			become(phase)
			next := pv.DeepCopy()
			change(next)
			Expect(theirs.Patch(ctx, next.DeepCopy(), client.MergeFrom(pv), client.DryRunAll)).NotTo(Succeed(), "another host's account must not change the volume")
			err := ours.Patch(ctx, next, client.MergeFrom(pv), client.DryRunAll)
			if allowed {
				Expect(err).NotTo(HaveOccurred())
				return
			}
			Expect(err).To(MatchError(ContainSubstring("Xylem's account")))
		},
		Entry("with consent", SpecTimeout(settle), corev1.VolumeAvailable, consented, taken("Retain"), true),
		Entry("with consent, changing the policy from Delete to Retain", SpecTimeout(settle), corev1.VolumeAvailable, func(p *corev1.PersistentVolume) { consented(p); deleted(p) }, taken("Delete"), true),
		Entry("with consent, after the volume's claim was deleted", SpecTimeout(settle), corev1.VolumeReleased, consented, taken("Retain"), true),
		Entry("without consent", SpecTimeout(settle), corev1.VolumeAvailable, plainVolume, taken("Retain"), false),
		Entry("without consent, after the volume's claim was deleted", SpecTimeout(settle), corev1.VolumeReleased, plainVolume, taken("Retain"), false),
		Entry("with consent that the account itself sets", SpecTimeout(settle), corev1.VolumeAvailable, plainVolume, consented, false),
		Entry("with consent for another host", SpecTimeout(settle), corev1.VolumeAvailable, func(p *corev1.PersistentVolume) { label(v1alpha1.LabelHost, "another")(p) }, taken("Retain"), false),
		Entry("with consent, while a claim uses the volume", SpecTimeout(settle), corev1.VolumeBound, consented, taken("Retain"), false),
		Entry("with consent, but without policy Retain", SpecTimeout(settle), corev1.VolumeAvailable, func(p *corev1.PersistentVolume) { consented(p); deleted(p) }, func(p *corev1.PersistentVolume) {
			taken("Delete")(p)
			deleted(p)
		}, false),
		Entry("with consent, but with a claim as the root", SpecTimeout(settle), corev1.VolumeAvailable, consented, func(p *corev1.PersistentVolume) {
			taken("Retain")(p)
			annotate(v1alpha1.AnnotationRoot, "default/data")(p)
		}, false),
		Entry("with consent, but recording the wrong policy", SpecTimeout(settle), corev1.VolumeAvailable, consented, taken("Delete"), false),
		Entry("with consent, reserving the volume for its host PV", SpecTimeout(settle), corev1.VolumeAvailable, consented, func(p *corev1.PersistentVolume) {
			taken("Retain")(p)
			p.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: v1alpha1.DefaultNamespace, Name: p.Name, UID: "some-uid"}
		}, true),
		Entry("with consent, but with a claimRef without a UID", SpecTimeout(settle), corev1.VolumeAvailable, consented, func(p *corev1.PersistentVolume) {
			taken("Retain")(p)
			p.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: v1alpha1.DefaultNamespace, Name: p.Name}
		}, false),
		Entry("with consent, but setting the claimRef to a claim", SpecTimeout(settle), corev1.VolumeAvailable, consented, func(p *corev1.PersistentVolume) {
			taken("Retain")(p)
			p.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "default", Name: "data", UID: "some"}
		}, false),
	)

	It("allow only users who may write stamps to use Xylem's keys in the member", func(ctx SpecContext) {
		for _, o := range []client.Object{
			claim(foreign), pod(foreign), volume("forged"), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "forged"}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: foreign, Name: "forged"}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: foreign, Name: "forged"}}, leafBudget(foreign),
			&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultNamespace, Name: someHost}},
		} {
			if o.GetNamespace() == foreign {
				o.SetName("forged")
			}
			Expect(other.Create(ctx, o.DeepCopyObject().(client.Object), client.DryRunAll)).To(Succeed(), "%T without a stamp", o)
			for _, stamp := range []func(client.Object){label(v1alpha1.LabelHost, someHost), annotate(v1alpha1.AnnotationRoot, "a/b")} {
				forged := o.DeepCopyObject().(client.Object)
				stamp(forged)
				Expect(other.Create(ctx, forged, client.DryRunAll)).To(MatchError(ContainSubstring("stamps.xylem.io")), "%T", o)
				forged = o.DeepCopyObject().(client.Object)
				stamp(forged)
				Expect(memberAdmin.Create(ctx, forged, client.DryRunAll)).To(Succeed(), "%T", o)
			}
		}
		By("using the names of Xylem's copies in namespaces that contain leaves")
		for namespace, taken := range map[string]bool{made: true, handed: true, foreign: false} {
			planted := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "secret.xylem-0123abcd"}}
			err := other.Create(ctx, planted, client.DryRunAll)
			Expect(err != nil).To(Equal(taken), "%s: %v", namespace, err)
		}
		By("changing, removing and adding keys of existing objects")
		pv := volume(unique("stamped"))
		stamped(pv)
		Expect(memberAdmin.Create(ctx, pv)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(memberAdmin.Delete(ctx, pv)).To(Succeed()) }, NodeTimeout(settle))
		for _, change := range []func(client.Object){
			annotate(v1alpha1.AnnotationRoot, "victim/claim"), annotate(v1alpha1.AnnotationRootUID, ""),
			label(v1alpha1.LabelHost, "another"), annotate(v1alpha1.AnnotationReclaimPolicy, "Delete"),
		} {
			for _, status := range []bool{false, true} {
				Expect(changed(ctx, other, status, pv, change)).To(MatchError(ContainSubstring("stamps.xylem.io")), "status: %t", status)
			}
		}
		Expect(changed(ctx, other, false, pv.DeepCopy(), label("example.com/a", "b"))).To(Succeed())
		By("handing over a foreign namespace through its subresource")
		var ns corev1.Namespace
		Expect(memberAdmin.Get(ctx, client.ObjectKey{Name: foreign}, &ns)).To(Succeed())
		label("example.com/a", "b")(&ns)
		Expect(other.SubResource("finalize").Update(ctx, ns.DeepCopy(), client.DryRunAll)).To(Succeed())
		label(v1alpha1.LabelHost, someHost)(&ns)
		Expect(other.SubResource("finalize").Update(ctx, &ns, client.DryRunAll)).To(MatchError(ContainSubstring("stamps.xylem.io")))
	}, SpecTimeout(settle))
})

func plainVolume(*corev1.PersistentVolume) {}

// deleted sets policy Delete, as a provisioner does.
func deleted(p *corev1.PersistentVolume) {
	p.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
}

// held sets the stamp and Retain, as leaf_pv does, and records the provisioner's policy.
func held(policy string) func(*corev1.PersistentVolume) {
	return func(p *corev1.PersistentVolume) {
		stamped(p)
		annotate(v1alpha1.AnnotationRoot, p.Spec.ClaimRef.Namespace+"/"+p.Spec.ClaimRef.Name)(p)
		annotate(v1alpha1.AnnotationReclaimPolicy, policy)(p)
		p.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}
}

// pointed sets the claimRef and the stamp to another claim.
func pointed(name string) func(*corev1.PersistentVolume) {
	return func(p *corev1.PersistentVolume) {
		p.Spec.ClaimRef = &corev1.ObjectReference{Namespace: p.Spec.ClaimRef.Namespace, Name: name, UID: "claim-uid"}
		annotate(v1alpha1.AnnotationRoot, p.Spec.ClaimRef.Namespace+"/"+name)(p)
	}
}

func annotated(key, value string) func(*corev1.PersistentVolume) {
	return func(p *corev1.PersistentVolume) { annotate(key, value)(p) }
}

// confined changes the security context of a Pod's container.
func confined(change func(*corev1.SecurityContext)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{}
		change(p.Spec.Containers[0].SecurityContext)
	}
}

// newNamespaceOf returns a namespace with a Pod Security level.
func newNamespaceOf(name, level string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": level}}}
}

// consented sets only the label of someHost, as the member's admin does.
func consented(p *corev1.PersistentVolume) { label(v1alpha1.LabelHost, someHost)(p) }

// taken sets the stamp of a host PV, and policy Retain.
func taken(policy string) func(*corev1.PersistentVolume) {
	return func(p *corev1.PersistentVolume) {
		stamped(p)
		annotate(v1alpha1.AnnotationReclaimPolicy, policy)(p)
		p.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}
}
