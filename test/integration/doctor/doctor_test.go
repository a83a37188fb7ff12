package doctor_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/doctor"
	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// here is this machine's clock.
var here = clock.RealClock{}

// finds expects doctor to find exactly these problems, with messages that contain the given parts,
// and to exit with 1 if one of the problems is an error.
func finds(ctx context.Context, c clock.Clock, args, want []string, words ...string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		found, code := checkup(ctx, g, c, args...)
		g.Expect(problems(found)).To(ConsistOf(want), "%+v", found.Findings)
		said := ""
		for _, f := range found.Findings {
			said += f.Message + ". To do: " + f.ToDo + "\n"
		}
		for _, word := range words {
			g.Expect(said).To(ContainSubstring(word))
		}
		g.Expect(code).To(Equal(min(1, found.Counts.Errors)))
	}).WithContext(ctx).Should(Succeed())
	shown(ctx, c, args...)
}

// healthy waits until doctor finds no problems, and returns what it checked.
func healthy(ctx context.Context) (found *doctor.Checkup) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		var code int
		found, code = checkup(ctx, g, here, asAdminOf(one)...)
		g.Expect(problems(found)).To(BeEmpty(), "%+v", found.Findings)
		g.Expect(code).To(BeZero())
	}).WithContext(ctx).Should(Succeed())
	return found
}

// asAdminOf returns the flags that a member's admin uses for doctor.
func asAdminOf(member string) []string {
	return []string{"--member-kubeconfig", x.Fleet.Member(member).KubeconfigPath()}
}

// create creates an object, and deletes it when the story ends.
func create(ctx context.Context, in *harness.Cluster, obj client.Object) {
	GinkgoHelper()
	Expect(in.API.Create(ctx, obj)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { //nolint:contextcheck // the story's has ended
		Expect(client.IgnoreNotFound(in.API.Delete(ctx, obj))).To(Succeed())
	})
}

// restored restores an object to its current state when the story ends.
func restored[T any, P interface {
	*T
	client.Object
}](ctx context.Context, in *harness.Cluster, obj P) P {
	GinkgoHelper()
	key := client.ObjectKeyFromObject(obj)
	Expect(in.API.Get(ctx, key, obj)).To(Succeed())
	before := obj.DeepCopyObject().(client.Object)
	before.SetManagedFields(nil)
	DeferCleanup(func(ctx SpecContext) { //nolint:contextcheck // the story's has ended
		Eventually(func() error {
			now := obj.DeepCopyObject().(client.Object)
			before.SetResourceVersion("")
			err := in.API.Get(ctx, key, now)
			if apierrors.IsNotFound(err) {
				before.SetUID("")
				return in.API.Create(ctx, before)
			}
			if err != nil {
				return err
			}
			before.SetResourceVersion(now.GetResourceVersion())
			return in.API.Update(ctx, before)
		}).WithContext(ctx).Should(Succeed())
	})
	return obj
}

// merge merges a change into an object, and reverts the change when the story ends.
func merge[T any, P interface {
	*T
	client.Object
}](ctx context.Context, in *harness.Cluster, name, change string) {
	GinkgoHelper()
	obj := P(new(T))
	obj.SetName(name)
	obj = restored[T, P](ctx, in, obj)
	Expect(in.API.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(change)))).To(Succeed())
}

var _ = Describe("kubectl xylem doctor", func() {
	// After a story has repaired what it broke, doctor must find no problems.
	BeforeEach(func() { DeferCleanup(func(ctx SpecContext) { healthy(ctx) }) })

	It("finds no error in a default installation, and exits with 0", suite.Core, func(ctx SpecContext) {
		found := healthy(ctx)
		checked := map[string][]doctor.Check{}
		for _, f := range found.Findings {
			checked[f.Cluster] = append(checked[f.Cluster], f.Check)
		}
		Expect(checked[""]).To(ConsistOf(doctor.CheckKubernetes, doctor.CheckPlugin, doctor.CheckDefinition, doctor.CheckManager, doctor.CheckRights, doctor.CheckPolicies,
			doctor.CheckDriver, doctor.CheckControlPlane, doctor.CheckClock, doctor.CheckMembers, doctor.CheckTokens, doctor.CheckNodeAPI, doctor.CheckDaemonSets,
			doctor.CheckSnapshots, doctor.CheckLeftovers))
		Expect(checked[one]).To(ConsistOf(doctor.CheckConnection, doctor.CheckKubernetes, doctor.CheckClock, doctor.CheckPolicies, doctor.CheckRights, doctor.CheckFence, doctor.CheckSnapshots))
		// The manager's account is not allowed to read policies.
		Expect(checked[two]).To(ConsistOf(doctor.CheckConnection, doctor.CheckKubernetes, doctor.CheckClock, doctor.CheckRights, doctor.CheckFence, doctor.CheckSnapshots))
		Expect(found.Missing).To(BeEmpty())
		Eventually(func(g Gomega) {
			out, complaints, code := plugin(ctx, here, append([]string{"doctor"}, asAdminOf(one)...)...)
			g.Expect(code).To(BeZero(), out)
			g.Expect(complaints).To(BeEmpty())
			g.Expect(out).To(ContainSubstring("\nMember " + two + "\n"))
			g.Expect(out).To(HaveSuffix(", 0 warnings, 0 errors\n"))
			AddReportEntry("kubectl xylem doctor", out)
		}).WithContext(ctx).Should(Succeed())
	}, SpecTimeout(storyTime))

	It("writes nothing", func(ctx SpecContext) {
		clusters := []*controlplane.Cluster{x.Fleet.Host, x.Fleet.Member(one), x.Fleet.Member(two)}
		marks := map[string]controlplane.Mark{}
		for _, c := range clusters {
			mark, err := c.Audit().Mark(ctx)
			Expect(err).NotTo(HaveOccurred())
			marks[c.Name()] = mark
		}
		healthy(ctx)
		for _, c := range clusters {
			requests, err := c.Audit().Since(ctx, marks[c.Name()])
			Expect(err).NotTo(HaveOccurred())
			ours := requests.Where(func(r controlplane.Request) bool { return r.UserAgent == "kubectl-xylem" })
			Expect(ours).NotTo(BeEmpty(), c.Name())
			Expect(ours.Writes()).To(BeEmpty(), c.Name())
			AddReportEntry("requests to "+c.Name(), fmt.Sprintf("%d", len(ours)))
		}
	}, SpecTimeout(storyTime))

	It("finds a missing policy, a policy that is not in force, and a changed policy", func(ctx SpecContext) {
		gone := restored(ctx, x.Host, &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "xylem-reserved-keys"}})
		Expect(x.Host.API.Delete(ctx, gone)).To(Succeed())
		merge[admissionv1.ValidatingAdmissionPolicyBinding](ctx, x.Host, "xylem-manager", `{"spec":{"validationActions":["Audit"]}}`)
		merge[admissionv1.ValidatingAdmissionPolicy](ctx, x.Host, "xylem-reflected-classes", `{"spec":{"failurePolicy":"Ignore"}}`)
		finds(ctx, here, asAdminOf(one), []string{"Error Policies", "Error Policies", "Error Policies"},
			`"xylem-reserved-keys" does not exist`, `"xylem-manager" is not in force`, `"xylem-reflected-classes" differs from this version's in its failurePolicy`)
	}, SpecTimeout(storyTime))

	It("finds a weakened policy in a member when the member's admin runs it", func(ctx SpecContext) {
		merge[admissionv1.ValidatingAdmissionPolicy](ctx, x.Member(one), "xylem-account", `{"spec":{"matchConditions":[{"name":"nobody","expression":"false"}]}}`)
		finds(ctx, here, asAdminOf(one), []string{"Error Policies " + one}, `"xylem-account" differs from this version's in its matchConditions`)
	}, SpecTimeout(storyTime))

	It("finds policies and webhooks that an earlier version left behind", func(ctx SpecContext) {
		labels := map[string]string{command.LabelName: command.LabelNameValue}
		create(ctx, x.Host, &admissionv1.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "xylem-old", Labels: labels},
			Spec: admissionv1.ValidatingAdmissionPolicySpec{
				Validations: []admissionv1.Validation{{Expression: "true"}},
				MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
					RuleWithOperations: suite.Rule(corev1.SchemeGroupVersion.WithResource("persistentvolumes"), admissionv1.Create),
				}}},
			},
		})
		create(ctx, x.Host, &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "xylem-hook", Labels: labels}})
		finds(ctx, here, asAdminOf(one), []string{"Warning Policies", "Warning Policies"}, "kubectl delete validatingadmissionpolicy xylem-old", "kubectl delete validatingwebhookconfiguration xylem-hook")
	}, SpecTimeout(storyTime))

	It("finds missing and excessive permissions, in the host and in a member", func(ctx SpecContext) {
		withoutRight(ctx, x.Host, "xylem-manager-role", "pods/eviction")
		withoutRight(ctx, x.Member(two), "xylem-member", "volumeattributesclasses")
		create(ctx, x.Host, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "too-much"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: v1alpha1.DefaultNamespace, Name: "xylem-controller-manager"}},
		})
		finds(ctx, here, asAdminOf(one), []string{"Warning Rights", "Error Rights " + two}, "never needs: * *.*", "get volumeattributesclasses.storage.k8s.io")
		Expect(x.Host.API.Delete(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "too-much"}})).To(Succeed())
		finds(ctx, here, asAdminOf(one), []string{"Error Rights", "Error Rights " + two}, "create pods/eviction")
	}, SpecTimeout(storyTime))

	It("finds that no manager runs, and that the objects that it maintains are missing", func(ctx SpecContext) {
		Expect(x.Manager.Stop()).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(x.Manager.Start(ctx)).To(Succeed())
			for _, name := range []string{one, two} {
				Expect(x.AwaitReady(ctx, name)).To(Succeed())
			}
		})
		Expect(x.Host.API.Delete(ctx, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ProvisionerName}})).To(Succeed())
		Eventually(func(g Gomega) {
			found, code := checkup(ctx, g, here, asAdminOf(one)...)
			g.Expect(code).To(Equal(1))
			g.Expect(problems(found)).To(ContainElements("Error Manager", "Error Driver", "Error NodeAPI"))
		}).WithContext(ctx).Should(Succeed())
		shown(ctx, here, asAdminOf(one)...)
	}, SpecTimeout(storyTime))

	It("finds that the API server cannot reach the node API of a manager that hangs", func(ctx SpecContext) {
		Expect(x.Manager.Signal(syscall.SIGSTOP)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(x.Manager.Signal(syscall.SIGCONT)).To(Succeed())
			// The manager exits if it was frozen while it renewed its Lease.
			Expect(x.Manager.Restart(ctx)).To(Succeed())
			for _, name := range []string{one, two} {
				Expect(x.AwaitReady(ctx, name)).To(Succeed())
			}
		})
		found, code := checkup(ctx, Default, here, asAdminOf(one)...)
		Expect(code).To(Equal(1))
		Expect(problems(found)).To(ContainElement("Error NodeAPI"))
		shown(ctx, here, asAdminOf(one)...)
	}, SpecTimeout(storyTime))

	It("finds an away member, and still checks the others", func(ctx SpecContext) {
		Expect(x.Fleet.Member(two).Proxy().SetMode(controlplane.Blackhole)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(x.Fleet.Member(two).Proxy().SetMode(controlplane.Pass)).To(Succeed())
			Expect(x.AwaitReady(ctx, two)).To(Succeed())
		})
		Eventually(func(g Gomega) {
			found, code := checkup(ctx, g, here, asAdminOf(one)...)
			g.Expect(code).To(Equal(1))
			g.Expect(problems(found)).To(ContainElements("Error Members "+two, "Error Connection "+two))
			g.Expect(problems(found)).NotTo(ContainElement(HaveSuffix(one)))
		}).WithContext(ctx).Should(Succeed())
		began := time.Now()
		shown(ctx, here, asAdminOf(one)...)
		AddReportEntry("duration with a member that does not respond", time.Since(began).Round(100*time.Millisecond).String())
	}, SpecTimeout(storyTime))

	It("finds credentials that a member rejects", func(ctx SpecContext) {
		kubeconfig, err := x.MemberKubeconfig(ctx, two)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			Expect(x.SetKubeconfig(ctx, two, kubeconfig)).To(Succeed())
			Expect(x.AwaitReady(ctx, two)).To(Succeed())
		})
		Expect(x.SetKubeconfig(ctx, two, withToken(kubeconfig, "rejected"))).To(Succeed())
		Eventually(func(g Gomega) {
			found, code := checkup(ctx, g, here, asAdminOf(one)...)
			g.Expect(code).To(Equal(1))
			g.Expect(problems(found)).To(ContainElements("Error Members "+two, "Error Connection "+two))
		}).WithContext(ctx).Should(Succeed())
		shown(ctx, here, asAdminOf(one)...)
	}, SpecTimeout(storyTime))

	It("finds a CRD of an older version", func(ctx SpecContext) {
		crd := &unstructured.Unstructured{}
		crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		crd.SetName("clusterregistrations.cluster.xylem.io")
		restored(ctx, x.Host, crd)
		_, err := x.Kubectl(ctx, x.Fleet.Host, "patch", "crd", "clusterregistrations.cluster.xylem.io", "--type=json",
			"-p", `[{"op":"remove","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/storage/properties/dataSources"}]`)
		Expect(err).NotTo(HaveOccurred())
		finds(ctx, here, asAdminOf(one), []string{"Error Definition"}, "is older than this plugin", ".spec.storage.dataSources")
	}, SpecTimeout(storyTime))

	It("finds a disabled feature gate of the scheduler if the scheduler's flags are visible, and a claim that makes the scheduler panic", func(ctx SpecContext) {
		old := harness.Claim(metav1.NamespaceDefault, "old", "late")
		old.Spec.StorageClassName, old.Annotations = nil, map[string]string{corev1.BetaStorageClassAnnotation: "late"}
		create(ctx, x.Host, old)
		create(ctx, x.Host, harness.HostClass("late", nil)) // admission rejects the claim from now on
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "kube-scheduler-a", Labels: map[string]string{"component": "kube-scheduler"}}}
		pod.Spec.SchedulerName = "nobody"
		pod.Spec.Containers = []corev1.Container{{Name: "kube-scheduler", Image: "scheduler:1", Command: []string{"kube-scheduler", "--feature-gates=NominatedNodeNameForExpectation=false"}}}
		create(ctx, x.Host, pod)
		finds(ctx, here, asAdminOf(one), []string{"Error ControlPlane", "Error ControlPlane"}, "kube-scheduler runs with feature gate NominatedNodeNameForExpectation=false",
			`names the class of claim "default/old"`, `kubectl patch persistentvolumeclaim old -n default`)
	}, SpecTimeout(storyTime))

	It("finds DaemonSets with Pods on virtual nodes", func(ctx SpecContext) {
		labels := map[string]string{"app": "agent"}
		agent := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "agent"}}
		agent.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		agent.Spec.Template.Labels = labels
		agent.Spec.Template.Spec.Containers = []corev1.Container{{Name: "agent", Image: "agent:1"}}
		agent.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		create(ctx, x.Host, agent)
		finds(ctx, here, asAdminOf(one), []string{"Warning DaemonSets"}, `DaemonSet "default/agent"`)
	}, SpecTimeout(storyTime))

	It("finds leftovers of earlier members", func(ctx SpecContext) {
		created := map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}
		create(ctx, x.Host, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultNamespace, Name: "gone-kubeconfig", Labels: created}})
		create(ctx, x.Host, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: "kosmos-gone", Labels: created}})
		finds(ctx, here, asAdminOf(one), []string{"Warning Leftovers", "Warning Leftovers"}, `Secret "gone-kubeconfig"`, `Lease "kosmos-gone"`)
	}, SpecTimeout(storyTime))

	It("finds that this machine's clock is wrong", func(ctx SpecContext) {
		wrong := ahead{here, -2 * time.Hour}
		finds(ctx, wrong, asAdminOf(one), []string{"Warning Clock"}, "behind the host's")
	}, SpecTimeout(storyTime))

	It("finds a token that will expire because the manager does not renew it", func(ctx SpecContext) {
		kubeconfig, err := x.MemberKubeconfig(ctx, two)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			Expect(x.SetKubeconfig(ctx, two, kubeconfig)).To(Succeed())
			Eventually(func(g Gomega) { g.Expect(expiry(ctx, g, two)).To(BeTemporally(">", time.Now().Add(12*time.Hour))) }).WithContext(ctx).Should(Succeed())
			Expect(x.AwaitReady(ctx, two)).To(Succeed())
		})
		out, err := x.Kubectl(ctx, x.Fleet.Member(two), "-n", v1alpha1.DefaultNamespace, "create", "token", "xylem", "--duration=1h")
		Expect(err).NotTo(HaveOccurred())
		Expect(x.SetKubeconfig(ctx, two, withToken(kubeconfig, out))).To(Succeed())
		finds(ctx, here, asAdminOf(one), []string{"Warning Tokens " + two}, "the manager doesn't renew it")
	}, SpecTimeout(storyTime))

	It("lists the checks that a user without permissions cannot run", func(ctx SpecContext) {
		create(ctx, x.Host, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "viewer"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "viewer"}},
		})
		create(ctx, x.Host, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "sees-registrations"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"clusterregistrations"}, Verbs: []string{"list"}},
		}})
		create(ctx, x.Host, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "sees-registrations"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "sees-registrations"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "viewer"}},
		})
		Eventually(func(g Gomega) {
			found, code := checkup(ctx, g, here, "--as=viewer")
			g.Expect(code).To(BeZero())
			g.Expect(problems(found)).To(ConsistOf("Warning Connection "+one, "Warning Connection "+two))
			var what []string
			for _, m := range found.Missing {
				what = append(what, m.What)
			}
			g.Expect(what).To(ContainElements("ValidatingAdmissionPolicies", "the permissions of the manager's account", "PersistentVolumes", "virtual nodes"))
		}).WithContext(ctx).Should(Succeed())
		shown(ctx, here, "--as=viewer")
	}, SpecTimeout(storyTime))

	It("exits with 2 if the host does not respond, or denies all reads", func(ctx SpecContext) {
		_, complaints, code := plugin(ctx, here, "doctor", "--as=nobody")
		Expect(code).To(Equal(2))
		Expect(complaints).To(ContainSubstring("lack a permission in the host"))
		address, err := harness.FreeAddress(ctx)
		Expect(err).NotTo(HaveOccurred())
		_, complaints, code = plugin(ctx, here, "doctor", "--server=https://"+address)
		Expect(code).To(Equal(2))
		Expect(complaints).To(ContainSubstring("the host at https://" + address + " is unreachable"))
	}, SpecTimeout(storyTime))
})

// withoutRight removes a resource from a ClusterRole until the story ends.
func withoutRight(ctx context.Context, in *harness.Cluster, role, resource string) {
	GinkgoHelper()
	r := restored(ctx, in, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role}})
	before := len(r.Rules)
	r.Rules = slices.DeleteFunc(r.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, resource) })
	Expect(r.Rules).To(HaveLen(before - 1))
	Expect(in.API.Update(ctx, r)).To(Succeed())
}

// withToken returns a copy of a kubeconfig in which it replaces the token.
func withToken(kubeconfig []byte, token string) []byte {
	GinkgoHelper()
	changed, err := access.KubeconfigWithToken(kubeconfig, strings.TrimSpace(token))
	Expect(err).NotTo(HaveOccurred())
	return changed
}

// expiry returns the time at which a registration's token expires.
func expiry(ctx context.Context, g Gomega, name string) time.Time {
	var cr v1alpha1.ClusterRegistration
	g.Expect(x.Host.API.Get(ctx, client.ObjectKey{Name: name}, &cr)).To(Succeed())
	return ptr.Deref(cr.Status.TokenExpires, metav1.Time{}).Time
}
