package stories_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// says matches a registration that has a condition with the given status, reason and message.
func says(condition string, status metav1.ConditionStatus, reason string, parts ...string) gomegatypes.GomegaMatcher {
	matchers := []gomegatypes.GomegaMatcher{HaveField("Type", condition), HaveField("Status", status), HaveField("Reason", reason)}
	for _, part := range parts {
		matchers = append(matchers, HaveField("Message", ContainSubstring(part)))
	}
	return HaveField("Status.Conditions", ContainElement(And(matchers...)))
}

// registration waits until a registration matches, and returns it.
func registration(ctx context.Context, name string, match gomegatypes.GomegaMatcher) *v1alpha1.ClusterRegistration {
	GinkgoHelper()
	return until[v1alpha1.ClusterRegistration](ctx, &story{}, x.Host, name, match)
}

// register creates a registration and its Secret, and does not wait until it is Ready.
func register(ctx context.Context, name string, kubeconfig []byte) {
	GinkgoHelper()
	Expect(x.SetKubeconfig(ctx, name, kubeconfig)).To(Succeed())
	cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cr.Spec.KubeconfigSecretRef.Name = harness.SecretName(name)
	Expect(x.Host.API.Create(ctx, cr)).To(Succeed())
	DeferCleanup(deregister, name, NodeTimeout(settle))
}

func deregister(ctx SpecContext, name string) {
	if err := x.Deregister(ctx, name); !apierrors.IsNotFound(err) {
		Expect(err).NotTo(HaveOccurred())
	}
	Expect(x.Host.API.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultNamespace, Name: harness.SecretName(name)}})).To(Succeed())
}

func confirmed(name string) string {
	return `{"metadata":{"annotations":{"` + v1alpha1.AnnotationConfirmDeregister + `":"` + name + `"}}}`
}

var _ = Describe("A member that is registered and deregistered", suite.Slow, Ordered, func() {
	const (
		third   = "cluster40"
		renamed = "forty"
	)
	var (
		member *harness.Cluster
		id     string
	)

	BeforeAll(func(ctx SpecContext) {
		var err error
		member, err = x.AddMember(ctx, memberOptions(third))
		Expect(err).NotTo(HaveOccurred())
		id = idOf(ctx, member)
		Expect(x.Register(ctx, third, third)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			if CurrentSpecReport().Failed() {
				x.Dump(ctx, GinkgoWriter, "")
			}
			Expect(x.RemoveMember(ctx, third)).To(Succeed())
		}, NodeTimeout(settle))
	}, NodeTimeout(storyTime))

	// web creates a Deployment with a claim in the member, regardless of the registration's name,
	// and returns the name of the claim's volume.
	web := func(ctx context.Context, s *story, change ...func(*corev1.PodSpec)) string {
		GinkgoHelper()
		s.claim(ctx, "data")
		labels := map[string]string{"app": "web"}
		spec := s.newPod("any", using("data")).Spec
		spec.NodeSelector = map[string]string{v1alpha1.LabelClusterID: id}
		for _, f := range change {
			f(&spec)
		}
		Expect(x.Host.API.Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
			},
		})).To(Succeed())
		s.onlyRunning(ctx)
		return s.bound(ctx, "data").Spec.VolumeName
	}

	It("is connected and identified, and has a virtual node", func(ctx SpecContext) {
		cr := registration(ctx, third, And(
			says(v1alpha1.ConditionConnected, metav1.ConditionTrue, v1alpha1.ReasonConnected, id),
			says(v1alpha1.ConditionSynced, metav1.ConditionTrue, v1alpha1.ReasonSynced),
			says(v1alpha1.ConditionNodeReady, metav1.ConditionTrue, v1alpha1.ReasonNodeReady),
			says(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)))
		Expect(cr.Status.ClusterID).To(Equal(id))
		Expect(cr.Status.NodeName).To(Equal("kosmos-" + third))

		// Kubernetes taints a new node until it has observed the node as Ready.
		node := until[corev1.Node](ctx, &story{}, x.Host, "kosmos-"+third, HaveField("Spec.Taints",
			ConsistOf(corev1.Taint{Key: v1alpha1.DefaultTaintKey, Value: "true", Effect: corev1.TaintEffectNoSchedule})))
		for key, value := range map[string]string{
			corev1.LabelHostname: node.Name, v1alpha1.LabelCluster: third, v1alpha1.LabelClusterID: id, v1alpha1.LabelVirtualNode: "true",
			corev1.LabelNodeExcludeBalancers: node.Labels[corev1.LabelNodeExcludeBalancers], // any value
		} {
			Expect(node.Labels).To(HaveKeyWithValue(key, value))
		}
		Expect(node.Annotations).NotTo(HaveKey("volumes.kubernetes.io/controller-managed-attach-detach"))
		Expect(node.Status.NodeInfo.KubeletVersion).To(Equal(cr.Status.KubernetesVersion))
		Expect(node.Status.Allocatable.Cpu().IsZero()).To(BeFalse())
		reported := map[corev1.NodeConditionType]string{}
		for _, c := range node.Status.Conditions {
			if c.Status == corev1.ConditionFalse {
				reported[c.Type] = c.Reason
			}
		}
		for kind, reason := range map[corev1.NodeConditionType]string{
			corev1.NodeMemoryPressure: v1alpha1.ReasonNotMeasured, corev1.NodeDiskPressure: v1alpha1.ReasonNotMeasured,
			corev1.NodePIDPressure: v1alpha1.ReasonNotMeasured, corev1.NodeNetworkUnavailable: v1alpha1.ReasonNetworkOfMember,
		} {
			Expect(reported).To(HaveKeyWithValue(kind, reason))
		}

		var lease coordinationv1.Lease
		Eventually(ctx, func(g Gomega) {
			g.Expect(x.Host.API.Get(ctx, client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: node.Name}, &lease)).To(Succeed())
			g.Expect(lease.Spec.RenewTime).NotTo(BeNil())
		}).WithContext(ctx).Should(Succeed())
		Expect(member.API.Get(ctx, client.ObjectKey{Namespace: v1alpha1.DefaultNamespace, Name: idOf(ctx, x.Host)}, &lease)).To(Succeed())
		Expect(lease.Annotations).To(HaveKey(v1alpha1.AnnotationFenceEpoch))
	}, SpecTimeout(storyTime))

	It("stays cordoned until an admin uncordons it (I5)", func(ctx SpecContext) {
		s := begin(ctx)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "kosmos-" + third}}
		patch(ctx, x.Host, node, `{"spec":{"unschedulable":true}}`)
		s.pushedTo(ctx, node.Name)
		s.probed(ctx, 2)
		until[corev1.Node](ctx, s, x.Host, node.Name, HaveField("Spec.Unschedulable", BeTrue()))
		patch(ctx, x.Host, node, `{"spec":{"unschedulable":null}}`)
	}, SpecTimeout(storyTime))

	It("keeps its leaves when its token changes, and reports unusable kubeconfigs", func(ctx SpecContext) {
		s := begin(ctx)
		web(ctx, s)
		leaves := s.uids(ctx, member)

		By("writing a new token")
		mark, err := member.Audit().Mark(ctx)
		Expect(err).NotTo(HaveOccurred())
		kubeconfig, err := x.MemberKubeconfig(ctx, third)
		Expect(err).NotTo(HaveOccurred())
		fresh, ok := access.ParseAccountToken(access.KubeconfigToken(kubeconfig))
		Expect(ok).To(BeTrue(), "the token must have an expiry time")
		Expect(x.SetKubeconfig(ctx, third, kubeconfig)).To(Succeed())
		// The link and its caches are kept, so only the expiry time shows the change.
		registration(ctx, third, HaveField("Status.TokenExpires.Time", BeTemporally("==", fresh.Expires)))
		Expect(x.AwaitReady(ctx, third)).To(Succeed())
		s.running(ctx, s.pushed(ctx, "kosmos-"+third))
		since, err := member.Audit().Since(ctx, mark)
		Expect(err).NotTo(HaveOccurred())
		Expect(since.By(harness.MemberUser).Writes().Where(func(r controlplane.Request) bool {
			barrier := r.Resource == "pods" && r.Verb == "create"
			return r.Namespace == s.namespace && !barrier
		})).To(BeEmpty(), "\n%s", since.By(harness.MemberUser).Writes())

		By("writing a kubeconfig that cannot be parsed")
		Expect(x.SetKubeconfig(ctx, third, []byte("{"))).To(Succeed())
		registration(ctx, third, says(v1alpha1.ConditionConnected, metav1.ConditionFalse, v1alpha1.ReasonKubeconfigInvalid))

		By("deleting the Secret")
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultNamespace, Name: harness.SecretName(third)}}
		Expect(x.Host.API.Delete(ctx, secret)).To(Succeed())
		registration(ctx, third, says(v1alpha1.ConditionConnected, metav1.ConditionFalse, v1alpha1.ReasonSecretNotFound, secret.Name))

		By("writing a token of a deleted account")
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultNamespace, Name: "xylem"}}
		Expect(member.API.Delete(ctx, account)).To(Succeed())
		Expect(x.PrepareAnew(ctx, third)).To(Succeed())
		Expect(x.SetKubeconfig(ctx, third, kubeconfig)).To(Succeed())
		registration(ctx, third, says(v1alpha1.ConditionConnected, metav1.ConditionFalse, v1alpha1.ReasonUnauthorized))

		By("writing a valid token")
		kubeconfig, err = x.MemberKubeconfig(ctx, third)
		Expect(err).NotTo(HaveOccurred())
		Expect(x.SetKubeconfig(ctx, third, kubeconfig)).To(Succeed())
		Expect(x.AwaitReady(ctx, third)).To(Succeed())
		for name, uid := range leaves {
			Expect(s.uids(ctx, member)).To(HaveKeyWithValue(name, uid))
		}
	}, SpecTimeout(storyTime))

	It("is deregistered with policy Retain, and adopted under another name (I2)", func(ctx SpecContext) {
		s := begin(ctx)
		s.service(ctx, "web")
		inHost(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "settings"}})
		volume := web(ctx, s, func(pod *corev1.PodSpec) {
			pod.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}
		})
		until[corev1.Service](ctx, s, member, "web", Not(BeNil()))
		cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: third}}

		By("deleting the registration: the deletion waits for a confirmation while Pods run in the member")
		Expect(x.Host.API.Delete(ctx, cr)).To(Succeed())
		registration(ctx, third, says(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonConfirmationNeeded, v1alpha1.AnnotationConfirmDeregister+"="+third))
		s.noted(ctx, "ClusterRegistration", third, v1alpha1.ReasonConfirmationNeeded, v1alpha1.AnnotationConfirmDeregister+"="+third)
		pod := s.onlyRunning(ctx)

		By("restarting the manager, although an admin forces the deregistration: a new process does not take the member for lost")
		patch(ctx, x.Host, cr, `{"metadata":{"annotations":{"`+v1alpha1.AnnotationForceDeregister+`":"true"}}}`)
		Expect(x.Manager.Kill()).To(Succeed())
		restarted := time.Now().Truncate(time.Second)
		Expect(x.Manager.Start(ctx)).To(Succeed())
		until[v1alpha1.ClusterRegistration](ctx, s, x.Host, third, And(
			HaveField("Status.Conditions", ContainElement(And(
				HaveField("Type", v1alpha1.ConditionConnected), HaveField("Status", metav1.ConditionTrue),
				HaveField("LastTransitionTime.Time", BeTemporally(">=", restarted))))),
			HaveField("Status.Conditions", ContainElement(And(
				HaveField("Type", v1alpha1.ConditionReady), HaveField("Reason", v1alpha1.ReasonConfirmationNeeded))))))
		Expect(s.onlyRunning(ctx)).To(Equal(pod))
		patch(ctx, x.Host, cr, `{"metadata":{"annotations":{"`+v1alpha1.AnnotationForceDeregister+`":null}}}`)

		By("confirming the deregistration: it then waits for a PodDisruptionBudget")
		budget := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"},
			Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		}
		inHost(ctx, budget)
		until[policyv1.PodDisruptionBudget](ctx, s, x.Host, "web", HaveField("Status.CurrentHealthy", BeEquivalentTo(1)))
		patch(ctx, x.Host, cr, confirmed(third))
		registration(ctx, third, says(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonDeregistering, "PodDisruptionBudgets block", s.namespace+"/"+pod))

		By("creating a second PodDisruptionBudget: the API server does not support the eviction, and the registration reports why")
		second := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "second"}, Spec: budget.Spec}
		inHost(ctx, second)
		registration(ctx, third, says(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonDeregistering, s.namespace+"/"+pod, "more than one PodDisruptionBudget"))
		Expect(x.Host.API.Delete(ctx, second)).To(Succeed())

		By("keeping the Pod with a finalizer, and re-creating another Pod on the member's node")
		patch(ctx, x.Host, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: pod}}, `{"metadata":{"finalizers":["example.com/keep"]}}`)
		stubborn := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "stubborn"}}
		stubborn.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "stubborn"}}
		stubborn.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: stubborn.Spec.Selector.MatchLabels}, Spec: s.newPod("any", boundTo("kosmos-"+third)).Spec}
		inHost(ctx, stubborn)
		Eventually(ctx, func(g Gomega) {
			var pods corev1.PodList
			g.Expect(x.Host.API.List(ctx, &pods, client.InNamespace(s.namespace), client.MatchingLabels{"app": "stubborn"})).To(Succeed())
			g.Expect(pods.Items).To(ContainElement(HaveField("Status.Reason", v1alpha1.ReasonMemberLeaving)))
		}).WithContext(ctx).Should(Succeed())

		By("lowering the PodDisruptionBudget: the deregistration waits until its leaf, which a finalizer keeps, is gone")
		leafBudget := until[policyv1.PodDisruptionBudget](ctx, s, member, "web", Not(BeNil()))
		patch(ctx, member, leafBudget, `{"metadata":{"finalizers":["example.com/keep"]}}`)
		patch(ctx, x.Host, budget, `{"spec":{"minAvailable":0}}`)
		s.noted(ctx, "Pod", pod, v1alpha1.ReasonEvicted, third)
		registration(ctx, third, says(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonDeregistering, "PodDisruptionBudget "+s.namespace+"/web", "finalizers"))
		patch(ctx, member, leafBudget, `{"metadata":{"finalizers":null}}`)
		gone[v1alpha1.ClusterRegistration](ctx, s, x.Host, third)
		gone[corev1.Node](ctx, s, x.Host, "kosmos-"+third)
		Expect(x.Host.API.Delete(ctx, stubborn)).To(Succeed())
		patch(ctx, x.Host, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: pod}}, `{"metadata":{"finalizers":null}}`)
		gone[storagev1.CSINode](ctx, s, x.Host, "kosmos-"+third)
		unmeasured(ctx, third)
		pv := until[corev1.PersistentVolume](ctx, s, x.Host, volume, Not(BeNil()))
		Expect(pv.Finalizers).NotTo(ContainElement(v1alpha1.FinalizerLeafVolume))
		Expect(pv.Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationClusterGone, third))
		until[corev1.PersistentVolumeClaim](ctx, s, member, "data", phase(corev1.ClaimBound))
		Expect(s.book(third, "data").LiveIDs()).To(HaveLen(1))
		var leaves corev1.PodList
		Expect(member.API.List(ctx, &leaves, client.InNamespace(s.namespace))).To(Succeed())
		Expect(leaves.Items).To(BeEmpty())
		for _, kind := range []client.ObjectList{&corev1.ServiceList{}, &discoveryv1.EndpointSliceList{}, &policyv1.PodDisruptionBudgetList{}, &corev1.ConfigMapList{}, &corev1.SecretList{}} {
			Expect(member.API.List(ctx, kind, client.InNamespace(s.namespace), client.MatchingLabels{v1alpha1.LabelHost: idOf(ctx, x.Host)})).To(Succeed())
			Expect(kind).To(HaveField("Items", BeEmpty()), "%T", kind)
		}

		By("registering the member under another name: Xylem adopts the existing objects")
		Expect(x.Register(ctx, renamed, third)).To(Succeed())
		until[corev1.PersistentVolume](ctx, s, x.Host, volume, And(
			HaveField("Finalizers", ContainElement(v1alpha1.FinalizerLeafVolume)),
			HaveField("Labels", HaveKeyWithValue(v1alpha1.LabelCluster, renamed)),
			HaveField("Annotations", Not(HaveKey(v1alpha1.AnnotationClusterGone)))))
		s.running(ctx, s.onlyRunning(ctx), "kosmos-"+renamed)
		Expect(s.book(third, "data").Count(ledger.CreateVolume)).To(Equal(1))
	}, SpecTimeout(storyTime))

	It("is deregistered with policy Drain when its last claim is deleted", func(ctx SpecContext) {
		s := begin(ctx)
		volume := web(ctx, s)
		cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: renamed}}
		patch(ctx, x.Host, cr, `{"spec":{"deregistration":"Drain"}}`)
		patch(ctx, x.Host, cr, confirmed(renamed))
		Expect(x.Host.API.Delete(ctx, cr)).To(Succeed())
		registration(ctx, renamed, says(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonDraining, s.namespace+"/data"))

		Expect(x.Host.API.Delete(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}})).To(Succeed())
		s.deleteClaim(ctx, "data")
		gone[v1alpha1.ClusterRegistration](ctx, s, x.Host, renamed)
		s.destroyed(ctx, third, "data", volume)
	}, SpecTimeout(storyTime))

	It("keeps its Node for its Pods if somebody removes the registration without deregistering it", func(ctx SpecContext) {
		Expect(x.Register(ctx, third, third)).To(Succeed())
		s := begin(ctx)
		volume := web(ctx, s)
		pod := s.onlyRunning(ctx)
		Expect(x.Manager.Kill()).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(x.Manager.Start(ctx)).To(Succeed()) }, NodeTimeout(settle))
		cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: third}}
		Expect(x.Host.API.Delete(ctx, cr)).To(Succeed())
		patch(ctx, x.Host, cr, `{"metadata":{"finalizers":null}}`)
		gone[v1alpha1.ClusterRegistration](ctx, s, x.Host, third)
		Expect(x.Manager.Start(ctx)).To(Succeed())
		s.noted(ctx, "Node", "kosmos-"+third, v1alpha1.ReasonRegistrationGone, third, "Register the cluster again under that name")
		s.why(ctx, "Pod", pod, inspect.StateNotFound, third, "Register the cluster again")

		By("registering the member again, as the event suggests")
		Expect(x.Register(ctx, third, third)).To(Succeed())
		s.running(ctx, s.onlyRunning(ctx), "kosmos-"+third)
		Expect(x.Host.API.Delete(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}})).To(Succeed())
		s.deleteClaim(ctx, "data")
		s.destroyed(ctx, third, "data", volume)
		Expect(x.Deregister(ctx, third)).To(Succeed())
	}, SpecTimeout(storyTime))

	It("is neither read nor written to once its address points to another cluster (I2)", func(ctx SpecContext) {
		Expect(x.Register(ctx, third, third)).To(Succeed())
		s := begin(ctx)
		s.lost = third
		volume := web(ctx, s)
		Expect(x.Fleet.Member(third).Wipe(ctx)).To(Succeed())
		registration(ctx, third, says(v1alpha1.ConditionConnected, metav1.ConditionFalse, v1alpha1.ReasonUnauthorized))
		Expect(x.PrepareAnew(ctx, third)).To(Succeed())
		mark, err := member.Audit().Mark(ctx)
		Expect(err).NotTo(HaveOccurred())
		kubeconfig, err := x.MemberKubeconfig(ctx, third)
		Expect(err).NotTo(HaveOccurred())
		Expect(x.SetKubeconfig(ctx, third, kubeconfig)).To(Succeed())
		registration(ctx, third, says(v1alpha1.ConditionConnected, metav1.ConditionFalse, v1alpha1.ReasonIdentityChanged, id))

		By("checking that Xylem writes nothing to the member, and deletes nothing in the host")
		s.barrier(ctx, nodeOne)
		since, err := member.Audit().Since(ctx, mark)
		Expect(err).NotTo(HaveOccurred())
		Expect(since.By(harness.MemberUser).Writes()).To(BeEmpty(), "\n%s", since.By(harness.MemberUser))
		Expect(since.By(harness.MemberUser).Where(func(r controlplane.Request) bool { return r.Verb == "list" || r.Verb == "watch" })).To(BeEmpty())
		until[corev1.PersistentVolume](ctx, s, x.Host, volume, And(phase(corev1.VolumeBound), HaveField("DeletionTimestamp", BeNil())))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", phase(corev1.ClaimBound))

		By("forcing the deregistration")
		cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: third}}
		patch(ctx, x.Host, cr, confirmed(third))
		patch(ctx, x.Host, cr, `{"metadata":{"annotations":{"`+v1alpha1.AnnotationForceDeregister+`":"true"}}}`)
		Expect(x.Host.API.Delete(ctx, cr)).To(Succeed())
		gone[v1alpha1.ClusterRegistration](ctx, s, x.Host, third)
		gone[corev1.Node](ctx, s, x.Host, "kosmos-"+third)
		until[corev1.PersistentVolume](ctx, s, x.Host, volume, HaveField("Annotations", HaveKeyWithValue(v1alpha1.AnnotationClusterGone, third)))
		s.recorded(ctx, id, v1alpha1.AnnotationForceDeregister, volume)
		s.noted(ctx, "ClusterRegistration", third, v1alpha1.ReasonForcedDeregistration, volume, "stays in the member")
	}, SpecTimeout(storyTime))
})

// uids returns the UIDs of the Pods and claims in the story's namespace in a cluster.
func (s *story) uids(ctx context.Context, c *harness.Cluster) map[string]string {
	GinkgoHelper()
	found := map[string]string{}
	var claims corev1.PersistentVolumeClaimList
	Expect(c.API.List(ctx, &claims, client.InNamespace(s.namespace))).To(Succeed())
	for i := range claims.Items {
		found["claim "+claims.Items[i].Name] = string(claims.Items[i].UID)
	}
	var pods corev1.PodList
	Expect(c.API.List(ctx, &pods, client.InNamespace(s.namespace))).To(Succeed())
	for i := range pods.Items {
		found["pod "+pods.Items[i].Name] = string(pods.Items[i].UID)
	}
	return found
}

// pushed creates a Pod without claims on a node, and returns its name. The Pod is a barrier that
// requires only one leaf Pod.
func (s *story) pushed(ctx context.Context, node string) string {
	GinkgoHelper()
	barriers++
	return s.pod(ctx, "pushed-"+string(rune('a'+barriers%26)), boundTo(node)).Name
}

var _ = Describe("A rejected registration", func() {
	It("is the younger of two registrations of one cluster, and the older one continues (I3)", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.running(ctx, "app", nodeOne)
		volume := s.bound(ctx, "data").Spec.VolumeName
		kubeconfig, err := x.MemberKubeconfig(ctx, one)
		Expect(err).NotTo(HaveOccurred())
		register(ctx, "again", kubeconfig)
		registration(ctx, "again", says(v1alpha1.ConditionConnected, metav1.ConditionFalse, v1alpha1.ReasonDuplicateCluster, one))

		By("deregistering it: all objects are kept")
		Expect(x.Deregister(ctx, "again")).To(Succeed())
		s.barrier(ctx, nodeOne)
		until[corev1.PersistentVolume](ctx, s, x.Host, volume, And(phase(corev1.VolumeBound),
			HaveField("Finalizers", ContainElement(v1alpha1.FinalizerLeafVolume)), HaveField("Labels", HaveKeyWithValue(v1alpha1.LabelCluster, one))))
		registration(ctx, one, says(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady))
	}, SpecTimeout(storyTime))

	It("has a kubeconfig that points to the host itself", func(ctx SpecContext) {
		kubeconfig, err := x.Host.Kubeconfig(controlplane.Direct)
		Expect(err).NotTo(HaveOccurred())
		register(ctx, "myself", kubeconfig)
		registration(ctx, "myself", says(v1alpha1.ConditionConnected, metav1.ConditionFalse, v1alpha1.ReasonIsHost))
	}, SpecTimeout(storyTime))

	It("has the name of an existing node of the host", func(ctx SpecContext) {
		kubeconfig, err := x.MemberKubeconfig(ctx, one)
		Expect(err).NotTo(HaveOccurred())
		Expect(x.SetKubeconfig(ctx, "taken", kubeconfig)).To(Succeed())
		cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "taken"}}
		cr.Spec.KubeconfigSecretRef.Name = harness.SecretName("taken")
		cr.Spec.Node.Name = plainNode
		Expect(x.Host.API.Create(ctx, cr)).To(Succeed())
		registration(ctx, "taken", says(v1alpha1.ConditionConnected, metav1.ConditionFalse, v1alpha1.ReasonNodeNameTaken, plainNode))
		Expect(x.Deregister(ctx, "taken")).To(Succeed())
		node := until[corev1.Node](ctx, &story{}, x.Host, plainNode, Not(BeNil()))
		Expect(ours(node.Labels)).To(BeEmpty())
		Expect(node.Spec.Unschedulable).To(BeFalse())
	}, SpecTimeout(storyTime))

	type (
		cluster = clientcmdapi.Cluster
		user    = clientcmdapi.AuthInfo
	)
	DescribeTable("has a kubeconfig with a field that could make the manager run a program or read a file: Xylem names the field (I8)", func(ctx SpecContext, field string, change func(*cluster, *user)) {
		pid := x.Manager.PID()
		kubeconfig, err := x.MemberKubeconfig(ctx, one)
		Expect(err).NotTo(HaveOccurred())
		config, err := clientcmd.Load(kubeconfig)
		Expect(err).NotTo(HaveOccurred())
		chosen := config.Contexts[config.CurrentContext]
		change(config.Clusters[chosen.Cluster], config.AuthInfos[chosen.AuthInfo])
		kubeconfig, err = clientcmd.Write(*config)
		Expect(err).NotTo(HaveOccurred())
		register(ctx, "refused", kubeconfig)
		registration(ctx, "refused", says(v1alpha1.ConditionConnected, metav1.ConditionFalse, v1alpha1.ReasonKubeconfigRefused, field))
		Expect(x.Manager.PID()).To(Equal(pid))
	},
		Entry(nil, SpecTimeout(storyTime), "exec", func(_ *cluster, u *user) {
			u.Exec = &clientcmdapi.ExecConfig{Command: "/bin/true", APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode}
		}),
	)

	DescribeTable("has an unusable kubeconfig: Xylem reports what is wrong", func(ctx SpecContext, part, kubeconfig string) {
		pid := x.Manager.PID()
		register(ctx, "invalid", []byte(kubeconfig))
		registration(ctx, "invalid", says(v1alpha1.ConditionConnected, metav1.ConditionFalse, v1alpha1.ReasonKubeconfigInvalid, part))
		Expect(x.Manager.PID()).To(Equal(pid))
	},
		Entry("binary data", SpecTimeout(storyTime), "cannot be parsed", "\x00\xff\xfe"),
	)
})

func aKubeconfig(server, user string) string {
	return `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "` + server + `"}}]
users: [{name: u, user: ` + user + `}]
`
}
