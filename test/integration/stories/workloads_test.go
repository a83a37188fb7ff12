package stories_test

import (
	"context"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

var _ = Describe("Workloads", func() {
	It("run in the members that the scheduler selects, and the replicas of a StatefulSet keep their disks", func(ctx SpecContext) {
		s := begin(ctx)
		labels := map[string]string{"app": "ledger"}
		set := &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "ledger"},
			Spec: appsv1.StatefulSetSpec{
				Replicas: ptr.To[int32](2), ServiceName: "ledger", PodManagementPolicy: appsv1.ParallelPodManagement,
				Selector:             &metav1.LabelSelector{MatchLabels: labels},
				Template:             corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec()},
				VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: s.newClaim("any").Spec}},
			},
		}
		Expect(x.Host.API.Create(ctx, set)).To(Succeed())
		type place struct{ node, volume string }
		places := func() map[string]place {
			GinkgoHelper()
			found := map[string]place{}
			for i := range 2 {
				pod, claim := fmt.Sprintf("ledger-%d", i), fmt.Sprintf("data-ledger-%d", i)
				found[pod] = place{s.running(ctx, pod).Spec.NodeName, s.bound(ctx, claim).Spec.VolumeName}
				Expect(found[pod].node).To(BeElementOf(nodeOne, nodeTwo))
			}
			return found
		}
		before := places()
		until[appsv1.StatefulSet](ctx, s, x.Host, "ledger", HaveField("Status.ReadyReplicas", BeEquivalentTo(2)))

		By("scaling down and up")
		patch(ctx, x.Host, set, `{"spec":{"replicas":0}}`)
		for pod := range before {
			gone[corev1.Pod](ctx, s, x.Host, pod)
		}
		patch(ctx, x.Host, set, `{"spec":{"replicas":2}}`)
		Expect(places()).To(Equal(before))
		for pod, place := range before {
			member := one
			if place.node == nodeTwo {
				member = two
			}
			book := s.book(member, "data-"+pod)
			Expect(book.Count(ledger.CreateVolume)).To(Equal(1))
			Expect(book.LiveIDs()).To(HaveLen(1))
		}
	}, SpecTimeout(storyTime))
})

// vanished matches a Pod that Xylem set to Failed, and whose containers have an unknown status.
var vanished = And(
	HaveField("Status.Conditions", ContainElements(
		And(HaveField("Type", corev1.PodReady), HaveField("Status", corev1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonPodFailed)),
		And(HaveField("Type", corev1.ContainersReady), HaveField("Status", corev1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonPodFailed)))),
	HaveField("Status.ContainerStatuses", HaveEach(HaveField("State.Terminated", And(Not(BeNil()), HaveField("Reason", v1alpha1.ReasonContainerStatusUnknown))))))

var _ = Describe("The end of a Pod", func() {
	DescribeTable("follows the end of its leaf: the Pod does not run again, but its Deployment creates another one", func(ctx SpecContext, end func(context.Context, *corev1.Pod) error, shown gomegatypes.GomegaMatcher) {
		s := begin(ctx)
		labels := map[string]string{"app": "web"}
		spec := s.newPod("any", using("data"), on(nodeOne)).Spec
		Expect(x.Host.API.Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
			},
		})).To(Succeed())
		s.why(ctx, "Deployment", "web", "NotFound", `claim "`+s.namespace+`/data" does not exist in the host`, "Create the claim")
		s.claim(ctx, "data")
		first := s.onlyRunning(ctx)
		leaf := until[corev1.Pod](ctx, s, x.Member(one), first, phase(corev1.PodRunning))
		Expect(end(ctx, leaf)).To(Succeed())

		until[corev1.Pod](ctx, s, x.Host, first, shown)
		Expect(s.onlyRunning(ctx)).NotTo(Equal(first))
		gone[corev1.Pod](ctx, s, x.Member(one), first)
		Expect(s.book(one, "data").Count(ledger.CreateVolume)).To(Equal(1))
	},
		Entry("the leaf vanished", SpecTimeout(storyTime), func(ctx context.Context, leaf *corev1.Pod) error {
			return x.Member(one).API.Delete(ctx, leaf, client.GracePeriodSeconds(0))
		}, And(phase(corev1.PodFailed), HaveField("Status.Reason", "LeafPodVanished"), vanished)),
		// KWOK ends its containers with exit code 0, like a container that handles SIGTERM.
		Entry("the leaf was evicted", SpecTimeout(storyTime), func(ctx context.Context, leaf *corev1.Pod) error {
			return x.Member(one).API.SubResource("eviction").Create(ctx, leaf, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: leaf.Namespace, Name: leaf.Name}})
		}, And(phase(corev1.PodFailed), HaveField("Status.Reason", "LeafPodEvicted"))),
	)

	DescribeTable("has the same result as the leaf's, so that Jobs count it correctly", func(ctx SpecContext, annotation string, condition batchv1.JobConditionType, end corev1.PodPhase) {
		s := begin(ctx)
		s.claim(ctx, "data")
		pod := s.newPod("any", using("data"), on(nodeOne), annotated(annotation, "true"))
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		Expect(x.Host.API.Create(ctx, &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "job"},
			Spec: batchv1.JobSpec{
				BackoffLimit: ptr.To[int32](0),
				Template:     corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: pod.Annotations}, Spec: pod.Spec},
			},
		})).To(Succeed())
		until[batchv1.Job](ctx, s, x.Host, "job", HaveField("Status.Conditions", ContainElement(And(
			HaveField("Type", condition), HaveField("Status", corev1.ConditionTrue)))))
		for _, c := range x.Clusters()[:2] {
			var pods corev1.PodList
			Expect(c.API.List(ctx, &pods, client.InNamespace(s.namespace))).To(Succeed())
			Expect(pods.Items).To(HaveLen(1), c.Name())
			Expect(pods.Items[0].Status.Phase).To(Equal(end), c.Name())
		}
	},
		Entry("success", SpecTimeout(storyTime), controlplane.AnnotationComplete, batchv1.JobComplete, corev1.PodSucceeded),
		Entry("failure", SpecTimeout(storyTime), controlplane.AnnotationFail, batchv1.JobFailed, corev1.PodFailed),
	)

	It("uses the grace period with which the Pod is deleted", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne), annotated(controlplane.AnnotationStopAfter, "12s"))
		s.running(ctx, "app", nodeOne)
		grace := int64(17)
		Expect(x.Host.API.Delete(ctx, s.newPod("app"), client.GracePeriodSeconds(grace))).To(Succeed())
		until[corev1.Pod](ctx, s, x.Member(one), "app", And(
			HaveField("DeletionTimestamp", Not(BeNil())), HaveField("DeletionGracePeriodSeconds", HaveValue(Equal(grace)))))

		By("checking that the host's Pod exists until no container runs in the member")
		until[corev1.Pod](ctx, s, x.Host, "app", HaveField("DeletionTimestamp", Not(BeNil())))
		gone[corev1.Pod](ctx, s, x.Host, "app")
		_, err := read[corev1.Pod](ctx, s, x.Member(one), "app")
		Expect(apierrors.IsNotFound(err)).To(BeTrue())
	}, SpecTimeout(storyTime))
})

var _ = Describe("Pods that are not pushed", func() {
	It("are reported if they belong to a DaemonSet", func(ctx SpecContext) {
		s := begin(ctx)
		labels := map[string]string{"app": "agent"}
		spec := podSpec()
		spec.NodeSelector = map[string]string{corev1.LabelHostname: nodeOne}
		Expect(x.Host.API.Create(ctx, &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "agent"},
			Spec: appsv1.DaemonSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
			},
		})).To(Succeed())
		var pods corev1.PodList
		Eventually(ctx, func(g Gomega) {
			g.Expect(x.Host.API.List(ctx, &pods, client.InNamespace(s.namespace))).To(Succeed())
			g.Expect(pods.Items).To(HaveLen(1))
			g.Expect(&pods.Items[0]).To(tells("DaemonSetNotPushed", v1alpha1.LabelVirtualNode))
		}).WithContext(ctx).Should(Succeed())
		s.noted(ctx, "Pod", pods.Items[0].Name, "DaemonSetNotPushed")
		Expect(s.left(ctx, x.Member(one))).To(BeEmpty())
	}, SpecTimeout(storyTime))

	It("report each field that requests something that no member can provide", func(ctx SpecContext) {
		s := begin(ctx)
		s.pod(ctx, "inline", boundTo(nodeOne), func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{
				{Name: "inline", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "inline.example.com"}}},
				{Name: "flex", VolumeSource: corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{Driver: "example.com/flex"}}},
			}
		})
		until[corev1.Pod](ctx, s, x.Host, "inline", tells("PodUnsupported", "csi", "flexVolume", "PersistentVolumeClaim"))
		s.noted(ctx, "Pod", "inline", "PodUnsupported")
		Expect(s.left(ctx, x.Member(one))).To(BeEmpty())
	}, SpecTimeout(storyTime))
})

// onlyRunning waits until one Pod in the story's namespace runs, and all other Pods there have
// ended. It returns the Pod's name.
func (s *story) onlyRunning(ctx context.Context) string {
	GinkgoHelper()
	var name string
	Eventually(ctx, func(g Gomega) {
		var pods corev1.PodList
		g.Expect(x.Host.API.List(ctx, &pods, client.InNamespace(s.namespace))).To(Succeed())
		var names []string
		for i := range pods.Items {
			switch pod := &pods.Items[i]; pod.Status.Phase {
			case corev1.PodRunning:
				names = append(names, pod.Name)
			case corev1.PodPending:
				names = append(names, pod.Name+" (pending)")
			default: // the Pod has ended
			}
		}
		g.Expect(names).To(HaveLen(1))
		g.Expect(names[0]).NotTo(ContainSubstring("pending"))
		name = names[0]
	}).WithContext(ctx).Should(Succeed())
	return name
}

var _ = Describe("A change to a running Pod or to its namespace", func() {
	It("is mirrored: the image, and the Pod Security labels", func(ctx SpecContext) {
		s := begin(ctx)
		s.pod(ctx, "app", on(nodeOne))
		s.running(ctx, "app", nodeOne)
		image := client.RawPatch("application/strategic-merge-patch+json", []byte(`{"spec":{"containers":[{"name":"main","image":"example/main:2"}]}}`))
		Expect(x.Host.API.Patch(ctx, s.newPod("app"), image)).To(Succeed())
		until[corev1.Pod](ctx, s, x.Member(one), "app", HaveField("Spec.Containers", ContainElement(HaveField("Image", "example/main:2"))))
		const enforce = "pod-security.kubernetes.io/enforce"
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
		until[corev1.Namespace](ctx, s, x.Member(one), s.namespace, HaveField("Labels", HaveKeyWithValue(enforce, "baseline")))
		for _, level := range []struct{ host, member string }{{`"restricted"`, "restricted"}, {"null", "baseline"}, {`"restricted"`, "restricted"}, {`"privileged"`, "baseline"}} {
			patch(ctx, x.Host, ns, `{"metadata":{"labels":{"`+enforce+`":`+level.host+`}}}`)
			until[corev1.Namespace](ctx, s, x.Member(one), s.namespace, HaveField("Labels", HaveKeyWithValue(enforce, level.member)))
		}
	}, SpecTimeout(storyTime))

	It("that the member's policy rejects is reported once, and arrives when the policy allows it", func(ctx SpecContext) {
		s := begin(ctx)
		s.pod(ctx, "app", on(nodeOne))
		before := s.running(ctx, "app", nodeOne)
		leaf := s.newPod("app")
		policy := suite.Denying("story-denies-"+s.namespace, corev1.SchemeGroupVersion.WithResource("pods"), admissionv1.Validation{
			Expression: fmt.Sprintf(`object.metadata.?labels[?"tier"].orValue("") != %q`, s.namespace), Message: "ask the platform team",
		}, admissionv1.Update)
		for _, obj := range policy {
			inMember(ctx, x.Member(one), obj)
		}
		body := client.RawPatch("application/merge-patch+json", []byte(fmt.Sprintf(`{"metadata":{"labels":{"tier":%q}}}`, s.namespace)))
		Eventually(ctx, func(ctx context.Context) string {
			return fmt.Sprint(x.Member(one).API.Patch(ctx, leaf.DeepCopy(), body, client.DryRunAll))
		}).Should(ContainSubstring("ask the platform team"))

		books := opened(ctx)
		Expect(x.Host.API.Patch(ctx, leaf.DeepCopy(), body)).To(Succeed())
		s.noted(ctx, "Pod", "app", v1alpha1.ReasonRefusedByMember, one, "ask the platform team", "Undo the change")

		By("waiting until Xylem has tried several times: it reports nothing else, and the Pod stays pushed")
		onApp := func(c *harness.Cluster, verb, resource string) int {
			return len(books.requests(ctx, c).Where(func(r controlplane.Request) bool {
				return r.Namespace == s.namespace && r.Name == "app" && r.Verb == verb && r.Resource == resource
			}))
		}
		Eventually(ctx, func() int { return onApp(x.Member(one), "patch", "pods") }).WithContext(ctx).Should(BeNumerically(">=", 4))
		Expect(onApp(x.Host, "patch", "pods/status")).To(BeZero())
		var events corev1.EventList
		Expect(x.Host.API.List(ctx, &events, client.InNamespace(s.namespace))).To(Succeed())
		warnings := slices.DeleteFunc(events.Items, func(e corev1.Event) bool {
			return e.Type != corev1.EventTypeWarning || e.Reason != v1alpha1.ReasonRefusedByMember
		})
		Expect(warnings).To(HaveLen(1))
		Expect(warnings[0].Count).To(BeNumerically("<=", 1))
		Expect(warnings[0].Series).To(BeNil())
		pod, err := read[corev1.Pod](ctx, s, x.Host, "app")
		Expect(err).NotTo(HaveOccurred())
		Expect(podstatus.FindPodCondition(pod.Status.Conditions, v1alpha1.PodPushed)).To(Equal(podstatus.FindPodCondition(before.Status.Conditions, v1alpha1.PodPushed)))
		Expect(ours(pod.Annotations)).To(Equal(ours(before.Annotations)))

		By("removing the policy")
		for _, obj := range policy {
			Expect(x.Member(one).API.Delete(ctx, obj)).To(Succeed())
		}
		until[corev1.Pod](ctx, s, x.Member(one), "app", HaveField("Labels", HaveKeyWithValue("tier", s.namespace)))
	}, SpecTimeout(2*storyTime))
})
