package register_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/why"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

const (
	namespace = v1alpha1.DefaultNamespace
	// users is a namespace in the host in which users create objects.
	users = "shop"
)

// admin returns the path of a member admin's kubeconfig.
func admin(name string) string { return x.Fleet.Member(name).KubeconfigPath() }

// changed returns the path of a modified copy of a member admin's kubeconfig.
func changed(name string, change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) string {
	GinkgoHelper()
	config, err := clientcmd.LoadFromFile(admin(name))
	Expect(err).NotTo(HaveOccurred())
	current := config.Contexts[config.CurrentContext]
	change(config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo])
	content, err := clientcmd.Write(*config)
	Expect(err).NotTo(HaveOccurred())
	return file(content)
}

func file(content []byte) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(os.WriteFile(path, content, 0o600)).To(Succeed())
	return path
}

func user(name, who string) string {
	GinkgoHelper()
	content, err := x.Fleet.Member(name).UserKubeconfig(controlplane.Direct, who)
	Expect(err).NotTo(HaveOccurred())
	return file(content)
}

// closed returns the URL of a loopback address on which nothing listens.
func closed(ctx context.Context) string {
	GinkgoHelper()
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(l.Close()).To(Succeed()) }()
	return "https://" + l.Addr().String()
}

// xylems returns the objects that registering creates in the host and in each member, with their
// kinds, names and UIDs.
func xylems(ctx context.Context) []string {
	GinkgoHelper()
	var all []string
	note := func(c *harness.Cluster, list client.ObjectList, opts ...client.ListOption) {
		Expect(c.API.List(ctx, list, opts...)).To(Succeed())
		Expect(meta.EachListItem(list, func(obj runtime.Object) error {
			o := obj.(client.Object)
			if _, ok := o.(*corev1.ServiceAccount); ok && o.GetName() == "default" {
				return nil // kube-controller-manager creates it some time after the namespace.
			}
			if strings.Contains(o.GetNamespace()+o.GetName(), "xylem") || c == x.Host {
				all = append(all, fmt.Sprintf("%s: %T %s %s", c.Name(), o, client.ObjectKeyFromObject(o), o.GetUID()))
			}
			return nil
		})).To(Succeed())
	}
	note(x.Host, &v1alpha1.ClusterRegistrationList{})
	note(x.Host, &corev1.SecretList{}, client.InNamespace(namespace))
	note(x.Host, &coordinationv1.LeaseList{}, client.InNamespace(namespace))
	for _, m := range x.Members() {
		for _, list := range []client.ObjectList{
			&corev1.NamespaceList{}, &corev1.ServiceAccountList{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{},
			&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &admissionv1.ValidatingAdmissionPolicyList{}, &admissionv1.ValidatingAdmissionPolicyBindingList{},
		} {
			note(m, list)
		}
	}
	slices.Sort(all)
	return all
}

// account returns the name of the account that registering creates in a member. It contains the
// host's ID.
func account(ctx context.Context) string {
	GinkgoHelper()
	id, err := x.Host.ID(ctx)
	Expect(err).NotTo(HaveOccurred())
	return "xylem-host-" + id
}

func registration(ctx context.Context, name string) *v1alpha1.ClusterRegistration {
	GinkgoHelper()
	cr := &v1alpha1.ClusterRegistration{}
	Expect(x.Host.API.Get(ctx, client.ObjectKey{Name: name}, cr)).To(Succeed())
	return cr
}

// versionOf returns the version that a member's API server reports.
func versionOf(member string) string {
	GinkgoHelper()
	version, err := x.Fleet.Member(member).Client().Discovery().ServerVersion()
	Expect(err).NotTo(HaveOccurred())
	return version.GitVersion
}

func secret(ctx context.Context, name string) *corev1.Secret {
	GinkgoHelper()
	s := &corev1.Secret{}
	Expect(x.Host.API.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name + "-kubeconfig"}, s)).To(Succeed())
	return s
}

func use(ctx context.Context, name, node string) *corev1.PersistentVolumeClaim {
	GinkgoHelper()
	claim, pod := harness.Claim(users, name, controlplane.ClassHostpath), harness.Pod(users, name, name)
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	Expect(x.Host.Create(ctx, claim, pod)).To(Succeed())
	Eventually(ctx, func(g Gomega) {
		g.Expect(x.Host.API.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
		g.Expect(claim.Status.Phase).To(Equal(corev1.ClaimBound))
		var pod corev1.Pod
		g.Expect(x.Host.API.Get(ctx, client.ObjectKeyFromObject(claim), &pod)).To(Succeed())
		g.Expect(pod.Status.Phase).To(Equal(corev1.PodRunning))
	}).WithContext(ctx).Should(Succeed())
	return claim
}

// badInputs defines the stories about inputs that the plugin rejects without changing a cluster.
func badInputs() {
	type input struct {
		kubeconfig func(SpecContext) string
		more       func(SpecContext) []string
		host       func() string
		says       []string
	}
	memberOne := func(SpecContext) string { return admin(one) }
	DescribeTable("reports the error, and leaves no objects", func(ctx SpecContext, in input) {
		args := []string{"register", "bad", "--member-kubeconfig", in.kubeconfig(ctx)}
		if in.more != nil {
			args = append(args, in.more(ctx)...)
		}
		before := xylems(ctx)
		host := x.Fleet.Host.KubeconfigPath()
		if in.host != nil {
			host = in.host()
		}
		_, _, err := pluginAt(ctx, host, args...)
		Expect(err).To(HaveOccurred())
		for _, words := range in.says {
			Expect(err.Error()).To(ContainSubstring(words))
		}
		// Namespaces are deleted asynchronously.
		Eventually(ctx, xylems).WithContext(ctx).Should(Equal(before))
	},
		Entry("no such file", SpecTimeout(storyTime), input{
			kubeconfig: func(SpecContext) string { return "/nowhere/kubeconfig" },
			says:       []string{"/nowhere/kubeconfig", "no such file"},
		}),
		Entry("no kubeconfig", SpecTimeout(storyTime), input{
			kubeconfig: func(SpecContext) string { return file([]byte("{not yaml")) },
			says:       []string{"read the member's kubeconfig"},
		}),
		Entry("optional permissions in a prepared member", SpecTimeout(storyTime), input{
			kubeconfig: memberOne,
			more:       func(SpecContext) []string { return []string{"--member-prepared", "--with-exec"} },
			says:       []string{"set exec.enabled in the values of the chart xylem-member"},
		}),
		Entry("shared volumes in a prepared member", SpecTimeout(storyTime), input{
			kubeconfig: memberOne,
			more: func(SpecContext) []string {
				return []string{"--member-prepared", "--with-shared-driver", "shared.example.com"}
			},
			says: []string{"set shared.drivers in the values of the chart xylem-member"},
		}),
		Entry("a Secret without a driver", SpecTimeout(storyTime), input{
			kubeconfig: memberOne,
			more:       func(SpecContext) []string { return []string{"--with-shared-secret", "storage/node"} },
			says:       []string{"--with-shared-secret has no effect without --with-shared-driver"},
		}),
		Entry("an API server that client libraries in Pods cannot reach", SpecTimeout(storyTime), input{
			kubeconfig: memberOne,
			more:       func(SpecContext) []string { return []string{"--api-server", "api.example:6443"} },
			says:       []string{"--api-server is malformed", "https://<host>[:<port>]"},
		}),
		Entry("an API server with a path, which the host rejects", SpecTimeout(storyTime), input{
			kubeconfig: memberOne,
			more:       func(SpecContext) []string { return []string{"--api-server", "https://api.example/clusters/a"} },
			says:       []string{"without a path"},
		}),
		Entry("ranges that are not CIDRs", SpecTimeout(storyTime), input{
			kubeconfig: memberOne,
			more:       func(SpecContext) []string { return []string{"--reachable", "10.8.0.1"} },
			says:       []string{"--reachable=10.8.0.1 is malformed", "use CIDRs"},
		}),
		Entry("a PriorityClass of the member's system", SpecTimeout(storyTime), input{
			kubeconfig: memberOne,
			more:       func(SpecContext) []string { return []string{"--priority-class", "gold=system-node-critical"} },
			says:       []string{"--priority-class=gold=system-node-critical is not allowed"},
		}),
		Entry("invalid namespace labels", SpecTimeout(storyTime), input{
			kubeconfig: memberOne,
			more:       func(SpecContext) []string { return []string{"--namespaces", "example.com/team"} },
			says:       []string{`"example.com/team": the label has no "="`, "Use KEY=VALUE[,KEY=VALUE]"},
		}),
		Entry("no such context", SpecTimeout(storyTime), input{
			kubeconfig: memberOne,
			more:       func(SpecContext) []string { return []string{"--member-context", "other"} },
			says:       []string{`context "other" does not exist`},
		}),
		Entry("invalid or expired credentials", SpecTimeout(storyTime), input{
			kubeconfig: func(SpecContext) string {
				return changed(one, func(_ *clientcmdapi.Cluster, who *clientcmdapi.AuthInfo) {
					*who = clientcmdapi.AuthInfo{Token: "expired"}
				})
			},
			says: []string{"the member at https://", "rejects the credentials", "log in again"},
		}),
		Entry("a user without permissions", SpecTimeout(storyTime), input{
			kubeconfig: func(SpecContext) string { return user(one, "nobody") },
			says:       []string{"the credentials lack a permission in the member", "cluster admin"},
		}),
		Entry("a user with read-only permissions", SpecTimeout(storyTime), input{
			kubeconfig: func(ctx SpecContext) string {
				Expect(client.IgnoreAlreadyExists(x.Member(one).API.Create(ctx, &rbacv1.ClusterRoleBinding{
					ObjectMeta: metav1.ObjectMeta{Name: "viewer"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
					Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "viewer"}},
				}))).To(Succeed())
				return user(one, "viewer")
			},
			says: []string{"nothing was changed", "apply Namespace xylem-system", "is not allowed to create a token for ServiceAccount xylem-system/xylem"},
		}),
		Entry("an unreachable member", SpecTimeout(storyTime), input{
			kubeconfig: func(ctx SpecContext) string {
				address := closed(ctx)
				return changed(one, func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.Server = address })
			},
			says: []string{"the member at https://127.0.0.1:", "is unreachable"},
		}),
		Entry("a kubeconfig with another cluster's CA", SpecTimeout(storyTime), input{
			kubeconfig: func(SpecContext) string {
				return changed(one, func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
					c.CertificateAuthorityData = x.Fleet.Member(two).CA()
				})
			},
			says: []string{"a certificate that the CA in the kubeconfig did not sign"},
		}),
		Entry("insecure-skip-tls-verify", SpecTimeout(storyTime), input{
			kubeconfig: func(SpecContext) string {
				return changed(one, func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
					c.CertificateAuthorityData, c.InsecureSkipTLSVerify = nil, true
				})
			},
			says: []string{"insecure-skip-tls-verify", "certificate-authority-data"},
		}),
		Entry("the host itself as the member", SpecTimeout(storyTime), input{
			kubeconfig: func(SpecContext) string { return x.Fleet.Host.KubeconfigPath() },
			says:       []string{"points to the host itself"},
		}),
		Entry("a host without Xylem", SpecTimeout(storyTime), input{
			kubeconfig: memberOne,
			host:       func() string { return admin(two) },
			says:       []string{"not installed in the host"},
		}),
		Entry("a missing name", SpecTimeout(storyTime), input{
			kubeconfig: memberOne,
			more:       func(SpecContext) []string { return []string{"another"} },
			says:       []string{"accepts 1 arg(s), received 2"},
		}),
		Entry("the name of an existing node", SpecTimeout(storyTime), input{
			kubeconfig: memberOne,
			more: func(ctx SpecContext) []string {
				var nodes corev1.NodeList
				Expect(x.Host.API.List(ctx, &nodes)).To(Succeed())
				Expect(nodes.Items).NotTo(BeEmpty())
				return []string{"--node-name", nodes.Items[0].Name}
			},
			says: []string{"NodeNameTaken", "Undone: registration bad, Secret bad-kubeconfig"},
		}),
		Entry("an address at which no server listens", SpecTimeout(storyTime), input{
			kubeconfig: memberOne,
			more: func(ctx SpecContext) []string {
				return []string{"--member-server", closed(ctx), "--timeout", "3s"}
			},
			says: []string{"not ready after 3s, because condition Connected is not True (Unreachable)", "Undone: registration bad, Secret bad-kubeconfig", "Namespace xylem-system in the member"},
		}),
		Entry("a Secret of another user", SpecTimeout(storyTime), input{
			kubeconfig: memberOne,
			more: func(ctx SpecContext) []string {
				foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bad-kubeconfig"}}
				Expect(x.Host.API.Create(ctx, foreign)).To(Succeed())
				DeferCleanup(func(ctx SpecContext) { Expect(x.Host.API.Delete(ctx, foreign)).To(Succeed()) }, NodeTimeout(settle))
				return nil
			},
			says: []string{`the host already has a Secret "xylem-system/bad-kubeconfig"`},
		}),
	)
}

var _ = Describe("An admin", Ordered, ContinueOnFailure, func() {
	badInputs()
	It("prints what would be created, without creating it", SpecTimeout(storyTime), func(ctx SpecContext) {
		before := xylems(ctx)
		words := map[string][]string{
			"member": {"# In the member:", "kind: ServiceAccount", "kind: ValidatingAdmissionPolicy"},
			"host":   {"# In the host.", "kind: Secret", "kind: ClusterRegistration", "deregistration: Drain"},
		}
		for _, dry := range []string{"client", "server"} {
			args := []string{"register", one, "--member-kubeconfig", admin(one), "--dry-run=" + dry, "-o", "yaml", "--deregistration-policy", "Drain"}
			_, _, err := plugin(ctx, args...)
			Expect(err).To(MatchError(ContainSubstring("needs --print=host or --print=member")))
			for side, its := range words {
				out, _, err := plugin(ctx, append(args, "--print", side)...)
				Expect(err).NotTo(HaveOccurred())
				for _, word := range its {
					Expect(out).To(ContainSubstring(word))
				}
				Expect(out).NotTo(MatchRegexp(`(?m)^(data|stringData):`))
				if side == "host" {
					Expect(out).NotTo(ContainSubstring("ValidatingAdmissionPolicy"))
				}
			}
		}
		Expect(xylems(ctx)).To(Equal(before))
	})

	It("has users whose Pods wait, and for whom `kubectl xylem why` reports that no cluster is registered", SpecTimeout(storyTime), func(ctx SpecContext) {
		Expect(x.Host.Create(ctx, harness.Claim(users, "early", controlplane.ClassHostpath), harness.Pod(users, "early", "early"))).To(Succeed())
		for _, kind := range []string{"pvc", "pod"} {
			Eventually(ctx, func(g Gomega) {
				out, _, code := suite.Plugin(ctx, x.Fleet.Host.KubeconfigPath(), clock.RealClock{}, "why", kind, "early", "--namespace", users, "--output", "json")
				var d why.Diagnosis
				g.Expect(json.Unmarshal([]byte(out), &d)).To(Succeed(), out)
				g.Expect(code).To(Equal(1))
				g.Expect(d.Causes).NotTo(BeEmpty(), out)
				g.Expect(d.Causes[0].Reason).To(Equal(v1alpha1.ReasonNoMembers), out)
				g.Expect(d.ToDo).To(Equal("Create a ClusterRegistration."))
			}).WithContext(ctx).Should(Succeed())
		}
		Expect(x.Host.API.Delete(ctx, harness.Pod(users, "early"))).To(Succeed())
		Expect(x.Host.API.Delete(ctx, harness.Claim(users, "early", controlplane.ClassHostpath))).To(Succeed())
	})

	It("registers, uses, repairs, rotates and deregisters a member", suite.Core, SpecTimeout(storyTime), func(ctx SpecContext) {
		By("registering the member")
		out, _, err := plugin(ctx, "register", one, "--member-kubeconfig", admin(one), "--member-server", x.Fleet.Member(one).Server(controlplane.ViaProxy))
		Expect(err).NotTo(HaveOccurred())
		for _, words := range []string{"cluster38 is a member: Connected", versionOf(one), "kosmos-cluster38", "cpu 64", "Next:", "tolerations: [{key: kosmos.io/node", "kubectl xylem tree", controlplane.ClassHostpath} {
			Expect(out).To(ContainSubstring(words))
		}
		Expect(string(secret(ctx, one).Data[v1alpha1.KubeconfigKey])).NotTo(ContainSubstring("client-certificate"))
		claim := use(ctx, "data", "kosmos-cluster38")
		Expect(xylems(ctx)).To(ContainElement(ContainSubstring("ServiceAccount xylem-system/" + account(ctx) + " ")))
		Eventually(ctx, func() *metav1.Condition { return condition(ctx, one, v1alpha1.ConditionPolicyEnforced) }).
			Should(HaveField("Reason", v1alpha1.ReasonPolicyInForce), "the API server enforces new policies after some seconds")

		By("rejecting another cluster with the same name, and the same cluster with another name")
		before := xylems(ctx)
		_, _, err = plugin(ctx, "register", one, "--member-kubeconfig", admin(two))
		Expect(err).To(MatchError(ContainSubstring(`registration "cluster38" belongs to cluster`)))
		_, _, err = plugin(ctx, "register", "another", "--member-kubeconfig", admin(one))
		Expect(err).To(MatchError(ContainSubstring(`is already registered as "cluster38"`)))
		Expect(xylems(ctx)).To(Equal(before))

		By("rotating the token, and repairing objects that a user deleted")
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "xylem-member"}}
		Expect(x.Member(one).API.Delete(ctx, role)).To(Succeed())
		old := secret(ctx, one)
		_, _, err = plugin(ctx, "register", one, "--member-kubeconfig", admin(one), "--class", "gold="+controlplane.ClassHostpath)
		Expect(err).NotTo(HaveOccurred())
		Expect(secret(ctx, one).Data).NotTo(Equal(old.Data))
		Expect(secret(ctx, one).UID).To(Equal(old.UID))
		Expect(x.Member(one).API.Get(ctx, client.ObjectKeyFromObject(role), role)).To(Succeed())
		Expect(registration(ctx, one).Spec.Storage.Classes).To(HaveLen(1))
		use(ctx, "later", "kosmos-cluster38")

		By("printing what deregistering the member would do")
		out, _, err = plugin(ctx, "deregister", one, "--dry-run")
		Expect(err).NotTo(HaveOccurred())
		for _, words := range []string{"policy Retain", "2 running Pods", users + "/data", "are evicted", "2 volumes", "stay in the member with their data"} {
			Expect(out).To(ContainSubstring(words))
		}
		_, _, err = plugin(ctx, "deregister", one)
		Expect(err).To(MatchError(ContainSubstring("--yes")))
		_, _, err = plugin(ctx, "deregister", one, "--yes", "--member-kubeconfig", admin(two))
		Expect(err).To(MatchError(ContainSubstring("--member-kubeconfig points to cluster")))
		Expect(registration(ctx, one).DeletionTimestamp).To(BeNil())

		By("deregistering the member: the data is kept, and the account is deleted")
		out, _, err = plugin(ctx, "deregister", one, "--yes", "--member-kubeconfig", admin(one))
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(And(ContainSubstring(`"cluster38" is no longer a member`), ContainSubstring("2 volumes"), ContainSubstring(`policy "xylem-stamps"`)))
		left := xylems(ctx)
		Expect(left).NotTo(ContainElement(ContainSubstring("cluster38-kubeconfig")))
		Expect(left).NotTo(ContainElement(ContainSubstring("ServiceAccount xylem-system/xylem")))

		By("registering the member again with another name: Xylem adopts the claim's volume, and runs a Pod that named the node before")
		named := harness.Pod(users, "named")
		named.Spec.NodeName = "kosmos-again"
		Expect(x.Host.API.Create(ctx, named)).To(Succeed())
		_, _, err = plugin(ctx, "register", "again", "--member-kubeconfig", admin(one), "--with-logs", "--with-exec", "--with-debug", "--with-metrics",
			"--with-shared-driver", "a.example.com", "--with-shared-driver", "b.example.com", "--with-shared-secret", "storage/node")
		Expect(err).NotTo(HaveOccurred())
		for _, part := range []string{"-logs", "-exec", "-debug", "-metrics", "-shared"} {
			Expect(xylems(ctx)).To(ContainElement(ContainSubstring("ClusterRoleBinding /" + account(ctx) + part + " ")))
		}
		sharing := &rbacv1.ClusterRole{}
		Expect(x.Member(one).API.Get(ctx, client.ObjectKey{Name: account(ctx) + "-shared"}, sharing)).To(Succeed())
		Expect(sharing.Rules).To(HaveLen(3))
		Expect(sharing.Rules[1].ResourceNames).To(Equal([]string{"a.example.com", "b.example.com"}))
		Expect(sharing.Rules[2].ResourceNames).To(Equal([]string{"storage/node"}))
		Eventually(ctx, func(g Gomega) {
			var pv corev1.PersistentVolume
			g.Expect(x.Host.API.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, &pv)).To(Succeed())
			g.Expect(pv.Labels).To(HaveKeyWithValue(v1alpha1.LabelCluster, "again"))
			g.Expect(x.Host.API.Get(ctx, client.ObjectKeyFromObject(named), named)).To(Succeed())
			g.Expect(named.Status.Phase).To(Equal(corev1.PodRunning))
		}).WithContext(ctx).Should(Succeed())

		By("draining the member: none of Xylem's objects are left in any cluster")
		Expect(x.Host.API.DeleteAllOf(ctx, &corev1.PersistentVolumeClaim{}, client.InNamespace(users))).To(Succeed())
		Expect(x.Host.API.Delete(ctx, named)).To(Succeed())
		_, told, err := plugin(ctx, "deregister", "again", "--yes", "--policy", "Drain", "--member-kubeconfig", admin(one))
		Expect(err).NotTo(HaveOccurred())
		Expect(told).NotTo(ContainSubstring("Warning"), "the plugin must not warn about deprecated kinds that the user did not request")
		Eventually(ctx, xylems).WithContext(ctx).Should(BeEmpty())
	})

	It("keeps an existing namespace, and rejects a member that is a host", SpecTimeout(storyTime), func(ctx SpecContext) {
		api := x.Member(two).API
		labels := map[string]string{"app.kubernetes.io/name": "xylem", "control-plane": "controller-manager"}
		its := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		Expect(api.Create(ctx, its)).To(Succeed())
		manager := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "xylem-controller-manager", Labels: labels}, Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example/main"}}}},
		}}
		Expect(api.Create(ctx, manager)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(api.Delete(ctx, manager))).To(Succeed()) }, NodeTimeout(settle))
		before := xylems(ctx)
		_, _, err := plugin(ctx, "register", two, "--member-kubeconfig", admin(two))
		Expect(err).To(MatchError(ContainSubstring(`runs Xylem's manager (Deployment "xylem-system/xylem-controller-manager")`)))
		Expect(xylems(ctx)).To(Equal(before))
		Expect(api.Delete(ctx, manager)).To(Succeed())

		_, _, err = plugin(ctx, "register", two, "--member-kubeconfig", admin(two))
		Expect(err).NotTo(HaveOccurred())
		out, _, err := plugin(ctx, "deregister", two, "--yes", "--member-kubeconfig", admin(two))
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(ContainSubstring(`Left in the member: namespace "xylem-system", which this plugin did not create`))
		now := &corev1.Namespace{}
		Expect(api.Get(ctx, client.ObjectKeyFromObject(its), now)).To(Succeed())
		Expect(now.DeletionTimestamp).To(BeNil())
		Expect(now.Labels).To(Equal(its.Labels))
		Expect(xylems(ctx)).NotTo(ContainElement(ContainSubstring("ServiceAccount xylem-system/xylem")))
	})

	It("limits a member to namespaces with the given labels, keeps this rule when registering again, and removes it on request", SpecTimeout(storyTime), func(ctx SpecContext) {
		const team, command = "example.com/team", "kubectl label namespace NAMESPACE example.com/team=payments"
		args := []string{"register", two, "--member-kubeconfig", admin(two)}
		rule := append(slices.Clone(args), "--namespaces", team+"=payments")
		required := func() map[string]string { return registration(ctx, two).Spec.Namespaces.MatchLabels }

		By("printing the registration")
		before := xylems(ctx)
		for _, dry := range []string{"client", "server"} {
			out, _, err := plugin(ctx, append(slices.Clone(rule), "--dry-run="+dry, "-o", "yaml", "--print", "host")...)
			Expect(err).NotTo(HaveOccurred())
			Expect(out).To(ContainSubstring("    matchLabels:\n      example.com/team: payments\n"))
		}
		Expect(xylems(ctx)).To(Equal(before))

		By("warning about a rule that matches no namespace yet")
		_, told, err := plugin(ctx, rule...)
		Expect(err).NotTo(HaveOccurred())
		Expect(told).To(And(ContainSubstring("warning: spec.namespaces of registration %q admits none of the host's", two), ContainSubstring(command)))
		Expect(required()).To(Equal(map[string]string{team: "payments"}))

		By("labeling a namespace, as the warning suggests")
		_, err = x.Kubectl(ctx, x.Fleet.Host, "label", "namespace", users, team+"=payments")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			_, err := x.Kubectl(ctx, x.Fleet.Host, "label", "namespace", users, team+"-")
			Expect(err).NotTo(HaveOccurred())
		}, NodeTimeout(settle))
		_, told, err = plugin(ctx, rule...)
		Expect(err).NotTo(HaveOccurred())
		Expect(told).NotTo(ContainSubstring("kubectl label namespace"))

		By("registering again without the flag, and then with an empty value")
		_, _, err = plugin(ctx, args...)
		Expect(err).NotTo(HaveOccurred())
		Expect(required()).To(Equal(map[string]string{team: "payments"}))
		_, _, err = plugin(ctx, append(slices.Clone(args), "--namespaces", "")...)
		Expect(err).NotTo(HaveOccurred())
		Expect(required()).To(BeEmpty())
		_, _, err = plugin(ctx, "deregister", two, "--yes", "--member-kubeconfig", admin(two))
		Expect(err).NotTo(HaveOccurred())
	})

	It("lets the manager act as the virtual node, and removes this permission with the registration", SpecTimeout(storyTime), func(ctx SpecContext) {
		const name, node, server = "identity", "kosmos-identity", "https://api.example:6443"
		out, _, err := plugin(ctx, "register", name, "--member-kubeconfig", admin(two), "--api-server", server, "--dry-run=client", "-o", "yaml", "--print", "host")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(And(ContainSubstring("impersonate:arbitrary-node"), ContainSubstring("- "+node+"\n"), ContainSubstring("url: "+server)))

		_, _, err = plugin(ctx, "register", name, "--member-kubeconfig", admin(two), "--api-server", server,
			"--reachable", "10.8.0.0/16,fd00::/64", "--priority-class", "production=database", "--priority-class", "batch=low")
		Expect(err).NotTo(HaveOccurred())
		cr := registration(ctx, name)
		Expect(cr.Spec.APIServer).To(HaveField("URL", server))
		reachable, priorities := []string{"10.8.0.0/16", "fd00::/64"}, []v1alpha1.ClassMapping{{Host: "production", Member: "database"}, {Host: "batch", Member: "low"}}
		Expect(cr.Spec.Services.Reachable).To(Equal(reachable))
		Expect(cr.Spec.Pods.PriorityClasses).To(Equal(priorities))
		var role rbacv1.ClusterRole
		var binding rbacv1.ClusterRoleBinding
		key := client.ObjectKey{Name: "xylem-node-" + name}
		Expect(x.Host.API.Get(ctx, key, &role)).To(Succeed())
		Expect(x.Host.API.Get(ctx, key, &binding)).To(Succeed())
		Expect(role.Rules[0]).To(And(HaveField("ResourceNames", ConsistOf(node)), HaveField("Verbs", ConsistOf("impersonate:arbitrary-node"))))
		Expect(role.Rules[1:]).To(ConsistOf(HaveField("Resources", ConsistOf("serviceaccounts/token"))), "only what --api-server needs")
		Expect(binding.Subjects).To(ConsistOf(And(HaveField("Namespace", namespace), HaveField("Name", "xylem-controller-manager"))))

		By("correcting the role, and stopping to give tokens, when the command runs again")
		role.Rules = role.Rules[:1]
		Expect(x.Host.API.Update(ctx, &role)).To(Succeed())
		_, _, err = plugin(ctx, "register", name, "--member-kubeconfig", admin(two), "--api-server", "", "--node-identity")
		Expect(err).NotTo(HaveOccurred())
		cr = registration(ctx, name)
		Expect(cr.Spec.APIServer).To(BeNil())
		Expect(cr.Spec.Services.Reachable).To(Equal(reachable), "without the flag, the value stays")
		Expect(cr.Spec.Pods.PriorityClasses).To(Equal(priorities), "without the flag, the value stays")
		Expect(x.Host.API.Get(ctx, key, &role)).To(Succeed())
		Expect(role.Rules[1:]).To(ConsistOf(HaveField("Resources", ConsistOf("secrets"))), "only what --node-identity needs")

		By("deregistering: the garbage collector deletes the role")
		_, _, err = plugin(ctx, "deregister", name, "--yes", "--member-kubeconfig", admin(two))
		Expect(err).NotTo(HaveOccurred())
		for _, obj := range []client.Object{&role, &binding} {
			Eventually(ctx, func() error { return x.Host.API.Get(ctx, key, obj) }).WithContext(ctx).Should(MatchError(ContainSubstring("not found")))
		}
	})

	It("neither overwrites nor removes foreign objects with Xylem's names in a member", SpecTimeout(storyTime), func(ctx SpecContext) {
		api := x.Member(two).API
		its := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "xylem-member"}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"example.com"}, Resources: []string{"trees"}, Verbs: []string{"get"},
		}}}
		Expect(api.Create(ctx, its)).To(Succeed())
		before := xylems(ctx)
		_, _, err := plugin(ctx, "register", two, "--member-kubeconfig", admin(two))
		Expect(err).To(MatchError(And(ContainSubstring("nothing was changed"), ContainSubstring("ClusterRole xylem-member in the member does not belong to Xylem"))))
		Expect(xylems(ctx)).To(Equal(before))
		now := &rbacv1.ClusterRole{}
		Expect(api.Get(ctx, client.ObjectKeyFromObject(its), now)).To(Succeed())
		Expect(now.Rules).To(Equal(its.Rules))

		By("labeling the foreign ClusterRole, as the message suggests")
		now.Labels = map[string]string{"app.kubernetes.io/name": "xylem"}
		Expect(api.Update(ctx, now)).To(Succeed())
		_, _, err = plugin(ctx, "register", two, "--member-kubeconfig", admin(two))
		Expect(err).NotTo(HaveOccurred())
		By("removing the label while the member is registered")
		Expect(api.Patch(ctx, now, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":null}}`)))).To(Succeed())
		out, _, err := plugin(ctx, "deregister", two, "--yes", "--member-kubeconfig", admin(two))
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(ContainSubstring("Left in the member: ClusterRole xylem-member, which does not belong to Xylem"))
		Expect(api.Delete(ctx, its)).To(Succeed())
	})

	It("overwrites another user's Secret only if a flag allows it", SpecTimeout(storyTime), func(ctx SpecContext) {
		its := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: two + "-kubeconfig"}, Data: map[string][]byte{v1alpha1.KubeconfigKey: []byte("its own")}}
		Expect(x.Host.API.Create(ctx, its)).To(Succeed())
		cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: two}}
		cr.Spec.KubeconfigSecretRef.Name = its.Name
		Expect(x.Host.API.Create(ctx, cr)).To(Succeed())
		before := xylems(ctx)
		_, _, err := plugin(ctx, "register", two, "--member-kubeconfig", admin(two))
		Expect(err).To(MatchError(And(ContainSubstring(`Secret "xylem-system/cluster39-kubeconfig"`), ContainSubstring("--overwrite-secret"))))
		Expect(xylems(ctx)).To(Equal(before))
		Expect(secret(ctx, two).Data).To(Equal(its.Data))
		Expect(secret(ctx, two).Labels).To(BeEmpty())

		out, _, err := plugin(ctx, "register", two, "--member-kubeconfig", admin(two), "--overwrite-secret")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(ContainSubstring("cluster39 is a member: Connected"))
		Expect(secret(ctx, two).Data).NotTo(Equal(its.Data))
		_, _, err = plugin(ctx, "deregister", two, "--yes", "--member-kubeconfig", admin(two))
		Expect(err).NotTo(HaveOccurred())
		Expect(xylems(ctx)).NotTo(ContainElement(ContainSubstring(its.Name)))

		By("registering a member whose last registration left such a Secret")
		its.ResourceVersion = ""
		Expect(x.Host.API.Create(ctx, its)).To(Succeed())
		_, _, err = plugin(ctx, "register", two, "--member-kubeconfig", admin(two))
		Expect(err).To(MatchError(And(ContainSubstring("kubectl -n xylem-system delete secret cluster39-kubeconfig"), ContainSubstring("--overwrite-secret"))))
		_, _, err = plugin(ctx, "register", two, "--member-kubeconfig", admin(two), "--overwrite-secret")
		Expect(err).NotTo(HaveOccurred())
		_, _, err = plugin(ctx, "deregister", two, "--yes", "--member-kubeconfig", admin(two))
		Expect(err).NotTo(HaveOccurred())
		Expect(xylems(ctx)).NotTo(ContainElement(ContainSubstring(its.Name)))
	})

	It("removes the Secret that an interrupted run has left behind", SpecTimeout(storyTime), func(ctx SpecContext) {
		left := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "left-kubeconfig", Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue},
		}}
		Expect(x.Host.API.Create(ctx, left)).To(Succeed())
		_, _, err := plugin(ctx, "deregister", "left", "--yes")
		Expect(err).NotTo(HaveOccurred())
		Expect(xylems(ctx)).NotTo(ContainElement(ContainSubstring("left-kubeconfig")))
		_, _, err = plugin(ctx, "deregister", "left", "--yes")
		Expect(err).To(MatchError(ContainSubstring(`no registration "left"`)))
	})

	renewals()

	It("reports a missing registration", SpecTimeout(storyTime), func(ctx SpecContext) {
		_, _, err := plugin(ctx, "deregister", "nobody", "--yes")
		Expect(err).To(MatchError(ContainSubstring(`no registration "nobody"`)))
	})
})
