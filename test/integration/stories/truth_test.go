package stories_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/integration/suite"
)

func withoutTolerations(p *corev1.Pod) { p.Spec.Tolerations = nil }

// placeable returns the message of a Pod's Placeable condition, or "" if the Pod has no such
// condition.
func placeable(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == v1alpha1.PodPlaceable {
			return c.Message
		}
	}
	return ""
}

var _ = Describe("A Pod that cannot be scheduled", Label(mistakes), func() {
	It("reports the right parameter if its class has a misspelled one", func(ctx SpecContext) {
		s := begin(ctx)
		inHost(ctx, hostClass("story-misspelled", "", func(c *storagev1.StorageClass) {
			c.Parameters = map[string]string{"xylem.io/memberclass": classMirror}
		}))
		s.claim(ctx, "data", ofClass("story-misspelled"))
		s.mistake("The StorageClass has a misspelled parameter")
		s.pod(ctx, "app", using("data"))
		s.shown(ctx, "Pod", "app", v1alpha1.ReasonClassInvalid, `claim "data"`, "xylem.io/memberclass", `did you mean "xylem.io/member-class"`)
	}, SpecTimeout(storyTime))

	It("reports the lines to add if it lacks a toleration", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data")
		s.mistake("The Pod does not tolerate the taint of virtual nodes")
		s.pod(ctx, "app", using("data"), withoutTolerations)
		s.shown(ctx, "Pod", "app", v1alpha1.ReasonTolerationMissing, one, two,
			`tolerations: [{key: kosmos.io/node, operator: Equal, value: "true", effect: NoSchedule}]`)
		Expect(s.book(one, "data").Calls(ledger.CreateVolume)).To(BeZero())
	}, SpecTimeout(storyTime))

	It("reports which members lack its class, and runs without that report when the class exists", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data", ofClass(classMissing))
		s.mistake("The StorageClass does not exist in any member")
		s.pod(ctx, "app", using("data"))
		s.shown(ctx, "Pod", "app", v1alpha1.ReasonNotOffered, one, two, classMissing, "spec.storage.classes")

		class := controlplane.Class(classMissing, storagev1.VolumeBindingWaitForFirstConsumer, corev1.PersistentVolumeReclaimDelete)
		class.Provisioner = controlplane.DefaultDriverName
		inMember(ctx, x.Member(two), &class)
		s.running(ctx, "app", nodeTwo)
		until[corev1.Pod](ctx, s, x.Host, "app", WithTransform(placeable, BeEmpty()))
	}, SpecTimeout(storyTime))

	It("reports the capacity that it requests and that each member has if no member has enough", func(ctx SpecContext) {
		s := begin(ctx)
		name := "story-small"
		roomy(ctx, name)
		segment(ctx, x.Member(one), name, "a", "2Gi")
		segment(ctx, x.Member(two), name, "a", "3Gi")
		room(ctx, x.Member(one), name, 2*gi)
		room(ctx, x.Member(two), name, 3*gi)
		s.claim(ctx, "data", ofClass(name), ofSize("5Gi"))
		s.mistake("The claim requests more capacity than any member has")
		s.pod(ctx, "app", using("data"))
		s.shown(ctx, "Pod", "app", v1alpha1.ReasonNoCapacity, fmt.Sprintf(`member %q has 2Gi of the 5Gi that claim "data" requests`, one), fmt.Sprintf("member %q has 3Gi", two))
	}, SpecTimeout(storyTime))

	It("reports an unsupported data source of its claim", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: ptr.To("example.com"), Kind: "Image", Name: "last"}
		})
		s.mistake("The claim's data source has an unsupported kind")
		s.pod(ctx, "app", using("data"))
		s.shown(ctx, "Pod", "app", v1alpha1.ReasonDataSourceUnsupported, `claim "data"`)
	}, SpecTimeout(storyTime))

	It("reports the member of its volume if that member is away", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data")
		s.pod(ctx, "first", using("data"), on(nodeTwo))
		s.running(ctx, "first", nodeTwo)
		s.deletePod(ctx, "first")
		gone[corev1.Pod](ctx, s, x.Host, "first")
		cutOff(ctx, two, controlplane.Cut)
		until[corev1.Node](ctx, s, x.Host, nodeTwo, HaveField("Spec.Taints", ContainElement(HaveField("Key", v1alpha1.TaintMemberAway))))
		s.mistake("The Pod's volume is in an unreachable member")
		s.pod(ctx, "app", using("data"))
		s.shown(ctx, "Pod", "app", v1alpha1.ReasonMemberAway, `claim "data"`, two, "has been away since")
	}, SpecTimeout(storyTime))
})

var _ = Describe("A Pod without a claim that Xylem provisions", func() {
	It("gets no Placeable condition", func(ctx SpecContext) {
		s := begin(ctx)
		s.pod(ctx, "other", withoutTolerations, on(nodeOne))
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), withoutTolerations)
		until[corev1.Pod](ctx, s, x.Host, "app", tells(v1alpha1.ReasonTolerationMissing, one))
		other, err := read[corev1.Pod](ctx, s, x.Host, "other")
		Expect(err).NotTo(HaveOccurred())
		Expect(placeable(other)).To(BeEmpty())
	}, SpecTimeout(storyTime))

	It("reports anti-affinity that excludes a virtual node, until another Pod leaves the node", func(ctx SpecContext) {
		s := begin(ctx)
		labelled := func(p *corev1.Pod) { metav1.SetMetaDataLabel(&p.ObjectMeta, "apart", "true") }
		s.pod(ctx, "first", on(nodeOne), labelled)
		s.running(ctx, "first", nodeOne)
		s.pod(ctx, "second", on(nodeOne), awayFrom("apart", "true"))
		s.shown(ctx, "Pod", "second", v1alpha1.ReasonNoMemberFits, "the Pod's anti-affinity", "each member is one node")
		s.deletePod(ctx, "first")
		s.running(ctx, "second", nodeOne)
		until[corev1.Pod](ctx, s, x.Host, "second", WithTransform(placeable, BeEmpty()))
	}, SpecTimeout(storyTime))
})

// cutOff disconnects a member with a mode of its proxy until the story ends, or until back() is
// called.
func cutOff(ctx context.Context, member string, mode controlplane.ProxyMode) (back func()) {
	GinkgoHelper()
	proxy := x.Fleet.Member(member).Proxy()
	Expect(proxy.SetMode(mode)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { //nolint:contextcheck // A cleanup has a context of its own.
		Expect(proxy.SetMode(controlplane.Pass)).To(Succeed())
		Expect(x.AwaitReady(ctx, member)).To(Succeed())
	}, NodeTimeout(settle))
	registration(ctx, member, says(v1alpha1.ConditionConnected, metav1.ConditionFalse, v1alpha1.ReasonUnreachable))
	return func() { Expect(proxy.SetMode(controlplane.Pass)).To(Succeed()) }
}

// evictedAfter is how long the stories' Pods tolerate a Node that is not Ready, in seconds.
const evictedAfter = 2

// impatient makes a Pod tolerate a Node that is not Ready, but only for a short time.
func impatient(p *corev1.Pod) {
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{
			Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](evictedAfter),
		})
	}
}

// whenAway sets spec.node.whenAway of a registration until the story ends.
func whenAway(ctx context.Context, member string, policy v1alpha1.AwayPolicy) {
	GinkgoHelper()
	set := func(ctx context.Context, to v1alpha1.AwayPolicy) {
		cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: member}}
		patch(ctx, x.Host, cr, fmt.Sprintf(`{"spec":{"node":{"whenAway":%q}}}`, to))
	}
	set(ctx, policy)
	DeferCleanup(func(ctx SpecContext) { set(ctx, v1alpha1.WhenAwayKeep) }, NodeTimeout(settle)) //nolint:contextcheck // As above.
}

// evicts waits until the host has evicted another Pod from a node that has just become NotReady.
// That Pod has the stories' tolerations, so it is a barrier for Pods that must not be evicted.
func evicts(ctx context.Context, s *story) {
	GinkgoHelper()
	name := "barrier-" + s.namespace
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	Expect(x.Host.API.Create(ctx, node)).To(Succeed())
	DeferCleanup(remove, x.Host, node, NodeTimeout(settle))
	s.pod(ctx, name, boundTo(name), impatient)
	patchStatus(ctx, node, `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Story","message":"never"}]}}`)
	Eventually(ctx, func(ctx context.Context) bool {
		pod, err := read[corev1.Pod](ctx, s, x.Host, name)
		return err != nil || pod.DeletionTimestamp != nil
	}).Should(BeTrue())
	Expect(client.IgnoreNotFound(x.Host.API.Delete(ctx, s.newPod(name), client.GracePeriodSeconds(0)))).To(Succeed())
}

func patchStatus(ctx context.Context, obj client.Object, body string) {
	GinkgoHelper()
	Expect(x.Host.API.Status().Patch(ctx, obj, client.RawPatch("application/merge-patch+json", []byte(body)))).To(Succeed())
}

// notReady matches a Pod that is not ready because its member is away.
var notReady = HaveField("Status.Conditions", ContainElement(And(
	HaveField("Type", corev1.PodReady), HaveField("Status", corev1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonMemberAway))))

var _ = Describe("The Pods of an away member", func() {
	// job starts a Job with one Pod in member two, and returns that Pod.
	job := func(ctx context.Context, s *story) *corev1.Pod {
		GinkgoHelper()
		s.claim(ctx, "data")
		pod := s.newPod("any", using("data"), on(nodeTwo), impatient)
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		Expect(x.Host.API.Create(ctx, &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "job"},
			Spec:       batchv1.JobSpec{BackoffLimit: ptr.To[int32](6), Template: corev1.PodTemplateSpec{Spec: pod.Spec}},
		})).To(Succeed())
		var found *corev1.Pod
		Eventually(ctx, func(ctx context.Context) error {
			var pods corev1.PodList
			err := x.Host.API.List(ctx, &pods, client.InNamespace(s.namespace), client.MatchingLabels{batchv1.JobNameLabel: "job"})
			if err == nil && len(pods.Items) == 1 {
				found = &pods.Items[0]
				return nil
			}
			return fmt.Errorf("%d Pods: %w", len(pods.Items), err)
		}).Should(Succeed())
		return s.running(ctx, found.Name, nodeTwo)
	}
	ready := func(status corev1.ConditionStatus, reason string) gomegatypes.GomegaMatcher {
		return HaveField("Status.Conditions", ContainElement(And(
			HaveField("Type", corev1.NodeReady), HaveField("Status", status), HaveField("Reason", reason))))
	}

	It("are kept, are not ready until the member is connected again, and then continue, so that a Job runs only once", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		pod := job(ctx, s)
		leaf, err := read[corev1.Pod](ctx, s, x.Member(two), pod.Name)
		Expect(err).NotTo(HaveOccurred())

		back := cutOff(ctx, two, controlplane.Cut)
		until[corev1.Node](ctx, s, x.Host, nodeTwo, ready(corev1.ConditionTrue, v1alpha1.ReasonPodsKept))
		until[corev1.Pod](ctx, s, x.Host, pod.Name, notReady)
		s.noted(ctx, "Pod", pod.Name, v1alpha1.ReasonMemberAway, two, "kept until the member is connected again")
		s.pod(ctx, "during", boundTo(nodeTwo)) // without a claim, and bound during the outage
		s.noted(ctx, "Pod", "during", v1alpha1.ReasonMemberAway, two, "kept until the member is connected again")
		s.why(ctx, "Pod", "during", v1alpha1.ReasonMemberAway, two)
		cr := until[v1alpha1.ClusterRegistration](ctx, s, x.Host, two, says(v1alpha1.ConditionNodeReady, metav1.ConditionFalse, v1alpha1.ReasonMemberAway))
		Expect(cr.Status.Conditions).To(ContainElement(And(
			HaveField("Type", v1alpha1.ConditionNodeReady), HaveField("Message", ContainSubstring("The host keeps the member's Pods and volumes, however long the outage lasts")))))
		evicts(ctx, s)
		kept, err := read[corev1.Pod](ctx, s, x.Host, pod.Name)
		Expect(err).NotTo(HaveOccurred())
		Expect(kept.UID).To(Equal(pod.UID))
		Expect(kept.DeletionTimestamp).To(BeNil())

		back()
		s.running(ctx, "during", nodeTwo)
		Expect(s.running(ctx, pod.Name, nodeTwo).UID).To(Equal(pod.UID))
		still, err := read[corev1.Pod](ctx, s, x.Member(two), pod.Name)
		Expect(err).NotTo(HaveOccurred())
		Expect(still.UID).To(Equal(leaf.UID))
		until[batchv1.Job](ctx, s, x.Host, "job", And(HaveField("Status.Active", BeEquivalentTo(1)), HaveField("Status.Failed", BeZero())))
		until[corev1.Node](ctx, s, x.Host, nodeTwo, And(ready(corev1.ConditionTrue, v1alpha1.ReasonReady),
			HaveField("Spec.Taints", Not(ContainElement(HaveField("Key", v1alpha1.TaintMemberAway))))))
	}, SpecTimeout(2*storyTime))

	It("are evicted by the host if the registration requests it", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		whenAway(ctx, two, v1alpha1.WhenAwayEvict)
		pod := job(ctx, s)
		cutOff(ctx, two, controlplane.Cut)
		until[corev1.Node](ctx, s, x.Host, nodeTwo, ready(corev1.ConditionFalse, v1alpha1.ReasonUnreachable))
		registration(ctx, two, HaveField("Status.Conditions", ContainElement(And(
			HaveField("Type", v1alpha1.ConditionNodeReady), HaveField("Message", ContainSubstring("From then on, it evicts the Pods"))))))
		until[corev1.Pod](ctx, s, x.Host, pod.Name, HaveField("DeletionTimestamp", Not(BeNil())))
	}, SpecTimeout(2*storyTime))
})

var _ = Describe("A Pod that is pushed", func() {
	It("reports once which of its fields are missing from its leaf", func(ctx SpecContext) {
		s := begin(ctx)
		Expect(x.Host.API.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "builder"}})).To(Succeed())
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne), func(p *corev1.Pod) {
			p.Spec.ServiceAccountName = "builder"
			p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/balanced"}}
		})
		s.noted(ctx, "Pod", "app", v1alpha1.ReasonFieldsLeftOut, one, `spec.serviceAccountName "builder" and its token`, "spec.readinessGates")

		By("checking that the Pod is not ready until somebody sets the readiness gate in the host")
		until[corev1.Pod](ctx, s, x.Host, "app", phase(corev1.PodRunning))
		s.why(ctx, "Pod", "app", v1alpha1.ReasonReadinessGates, "example.com/balanced", "the controller that sets the gate")
	}, SpecTimeout(storyTime))

	It("reports that a debug container does not run, and who can grant the permission", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		pod := s.running(ctx, "app", nodeOne)
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debugger", Image: "example/debug"}}}
		Expect(x.Host.API.SubResource("ephemeralcontainers").Update(ctx, pod)).To(Succeed())
		s.noted(ctx, "Pod", "app", v1alpha1.ReasonEphemeralContainersNotRun, `"debugger"`, one, "pods/ephemeralcontainers", "kubectl xylem register "+one+" --member-kubeconfig FILE --with-debug")
	}, SpecTimeout(storyTime))

	It("makes a Service that selects it report which networks must be connected", func(ctx SpecContext) {
		s := begin(ctx)
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"},
			Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}},
		}
		inHost(ctx, service)
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne), func(p *corev1.Pod) { p.Labels = map[string]string{"app": "web"} })
		s.running(ctx, "app", nodeOne)
		s.noted(ctx, "Service", "web", v1alpha1.ReasonEndpointsInMember, one, "Networking")
	}, SpecTimeout(storyTime))
})
