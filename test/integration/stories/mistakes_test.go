package stories_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// mistakes labels the stories about newcomers' mistakes. The report of each story contains what
// the user sees. With `-ginkgo.label-filter=mistakes -ginkgo.json-report=FILE`, FILE contains the
// times of the mistake and of Xylem's report.
const mistakes = "mistakes"

// mistake adds the time of a mistake to the report. The title describes what the user did. It is
// the first cell of the rows in internal/MISTAKES.md that shown() and why() add afterwards.
func (s *story) mistake(title string) {
	s.made = title
	By("making the mistake: " + title)
}

// shown expects a Xylem condition on an object, with the cause and the remedy, and an event with
// the same reason. `kubectl xylem why` must name the same cause first. shown writes the message to
// the report.
func (s *story) shown(ctx context.Context, kind, name, reason string, parts ...string) {
	GinkgoHelper()
	var message string
	note := WithTransform(func(obj any) any {
		for _, c := range reportsOf(obj) {
			if c.Reason == reason {
				message = c.Message
			}
		}
		return obj
	}, showing(reason, parts...))
	switch kind {
	case "Pod":
		until[corev1.Pod](ctx, s, x.Host, name, note)
	case "PersistentVolumeClaim":
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, name, note)
	case "ClusterRegistration":
		registration(ctx, name, note)
	}
	AddReportEntry(fmt.Sprintf("%s reports %s", kind, reason), message, ReportEntryVisibilityFailureOrVerbose)
	s.noted(ctx, kind, name, reason, parts...)
	if kind != "ClusterRegistration" {
		s.why(ctx, kind, name, reason)
		return
	}
	what, toDo := inspect.ExplainReason(reason, message)
	Expect(toDo).NotTo(BeEmpty(), message)
	s.answered(answer{On: kind, By: "kubectl describe clusterregistration", Reason: reason, Summary: what, ToDo: toDo})
}

// reportsOf returns the conditions of an object that have a message.
func reportsOf(obj any) []metav1.Condition {
	var all []metav1.Condition
	switch o := obj.(type) {
	case *corev1.Pod:
		for _, c := range o.Status.Conditions {
			all = append(all, metav1.Condition{Type: string(c.Type), Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message})
		}
	case *corev1.PersistentVolumeClaim:
		for _, c := range o.Status.Conditions {
			all = append(all, metav1.Condition{Type: string(c.Type), Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message})
		}
	case *v1alpha1.ClusterRegistration:
		all = o.Status.Conditions
	}
	return all
}

// showing matches an object with a condition that is False with the given reason and message.
func showing(reason string, parts ...string) gomegatypes.GomegaMatcher {
	matchers := []gomegatypes.GomegaMatcher{HaveField("Status", metav1.ConditionFalse), HaveField("Reason", reason)}
	for _, part := range parts {
		matchers = append(matchers, HaveField("Message", ContainSubstring(part)))
	}
	return WithTransform(reportsOf, ContainElement(And(matchers...)))
}

var _ = Describe("A newcomer's mistake", Label(mistakes), func() {
	It("a node of the host in spec.nodeName: the Pod names the node, and reports that a member's volume cannot be used on it", func(ctx SpecContext) {
		s := begin(ctx)
		s.mistake("The Pod sets spec.nodeName to a node of the host")
		s.pod(ctx, "app", using("data"), func(p *corev1.Pod) { p.Spec.NodeName = plainNode })
		By("creating the claim after the Pod")
		s.claim(ctx, "data")
		s.shown(ctx, "Pod", "app", v1alpha1.ReasonVolumeUnreachable, plainNode, "spec.nodeName")
	}, SpecTimeout(storyTime))

	It("a class that binds immediately: the Pod names the mode to use", func(ctx SpecContext) {
		s := begin(ctx)
		s.mistake("The StorageClass has volumeBindingMode Immediate")
		s.claim(ctx, "data", ofClass(classImmediate))
		s.pod(ctx, "app", using("data"))
		s.shown(ctx, "Pod", "app", v1alpha1.ReasonImmediate, `claim "data"`, classImmediate, "volumeBindingMode", "WaitForFirstConsumer")
		s.noted(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonImmediate, classImmediate, "WaitForFirstConsumer")
		s.barrier(ctx, nodeOne)
		for _, m := range []string{one, two} {
			Expect(s.book(m, "data").Calls(ledger.CreateVolume)).To(BeZero())
		}
	}, SpecTimeout(storyTime))

	DescribeTable("a member's quota: the Pod quotes it, and reports who can change it", func(ctx SpecContext, title string, resource corev1.ResourceName, reason, ofClaim string) {
		s := begin(ctx)
		for _, m := range []string{one, two} {
			s.strange(ctx, x.Member(m), handedOver(ctx))
			s.exhausted(ctx, x.Member(m), resource)
		}
		s.mistake(title)
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"))
		s.shown(ctx, "Pod", "app", reason, "exceeded quota", "member", "ask the member's admin to change the quota")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", tells(ofClaim, "exceeded quota"))
		s.why(ctx, "PersistentVolumeClaim", "data", reason, "exceeded quota", "ask the member's admin to change the quota")
		// Otherwise, Xylem could push the Pod once the quota is removed, and the member's namespace, which is
		// removed next, could take the claim away while its disk is being created: such a disk is kept (I2).
		s.deletePod(ctx, "app")
		s.deleteClaim(ctx, "data")
	},
		Entry("of claims", SpecTimeout(storyTime), "The member's quota does not allow another claim", corev1.ResourcePersistentVolumeClaims, v1alpha1.ReasonRefusedByMember, v1alpha1.ReasonRefusedByMember),
		Entry("of Pods", SpecTimeout(storyTime), "The member's quota does not allow another Pod", corev1.ResourcePods, v1alpha1.ReasonRefusedByMember, v1alpha1.ReasonPodRefused),
	)

	It("a namespace that the member restricts: the Pod quotes Pod Security, and reports what to change", func(ctx SpecContext) {
		s := begin(ctx)
		labels := handedOver(ctx)
		labels["pod-security.kubernetes.io/enforce"] = "restricted"
		namespace := s.strange(ctx, x.Member(one), labels)
		s.mistake("The Pod violates the Pod Security level of its namespace in the member")
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.shown(ctx, "Pod", "app", v1alpha1.ReasonRefusedByMember, one, "PodSecurity", "securityContext", "Change the Pod")

		By("removing the restriction as the member's admin, after which Xylem tries again")
		patch(ctx, x.Member(one), namespace, `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":null}}}`)
		s.running(ctx, "app", nodeOne)
	}, SpecTimeout(storyTime))

	It("a namespace that already exists in the member: it is not changed, and the Pod waits and reports the command that hands it over (I4)", func(ctx SpecContext) {
		s := begin(ctx)
		member, host := x.Member(one), idOf(ctx, x.Host)
		namespace := s.strange(ctx, member, map[string]string{"team": "theirs"})
		s.mistake("The namespace already exists in the member")
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.shown(ctx, "Pod", "app", v1alpha1.ReasonNamespaceConflict, one, "kubectl label namespace "+s.namespace)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", tells(v1alpha1.ReasonNamespaceConflict, one, fmt.Sprintf("kubectl label namespace %s %s=%s", s.namespace, v1alpha1.LabelHost, host)))
		s.noted(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonNamespaceConflict)
		Expect(s.left(ctx, member)).To(BeEmpty())

		By("handing the namespace over as the member's admin")
		patch(ctx, member, namespace, `{"metadata":{"labels":{"`+v1alpha1.LabelHost+`":"`+host+`"}}}`)
		s.running(ctx, "app", nodeOne)
		namespace = until[corev1.Namespace](ctx, s, member, s.namespace, Not(BeNil()))
		Expect(ours(namespace.Labels)).To(Equal(map[string]string{v1alpha1.LabelHost: host}))
		Expect(ours(namespace.Annotations)).To(BeEmpty())
		Expect(namespace.Labels).NotTo(HaveKey(v1alpha1.LabelManagedBy))
	}, SpecTimeout(storyTime))

	It("an access mode that the member's driver lacks: the Pod quotes the driver", func(ctx SpecContext) {
		s := begin(ctx)
		for _, m := range []string{one, two} {
			s.faulty(m, codes.InvalidArgument, "access mode MULTI_NODE_MULTI_WRITER is not supported", "data")
		}
		s.mistake("The claim requests an access mode that the member's driver does not support")
		s.claim(ctx, "data", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		})
		s.pod(ctx, "app", using("data"))
		s.shown(ctx, "Pod", "app", v1alpha1.ReasonProvisioningFailed, `claim "data"`, "MULTI_NODE_MULTI_WRITER is not supported", "member", "Change the claim or its class")
	}, SpecTimeout(storyTime))

	DescribeTable("a reference to a missing object: the Pod names it", func(ctx SpecContext, title, kind string, refer podOption) {
		s := begin(ctx)
		s.mistake(title)
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), refer)
		s.shown(ctx, "Pod", "app", v1alpha1.ReasonReferenceMissing, kind+` "settings"`, "Create")
	},
		Entry("a ConfigMap in a volume", SpecTimeout(storyTime), "The Pod mounts a ConfigMap that does not exist", "ConfigMap", func(p *corev1.Pod) {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "settings", VolumeSource: corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}},
			}})
		}),
		Entry("a Secret in the environment", SpecTimeout(storyTime), "The Pod sets its environment from a Secret that does not exist", "Secret", func(p *corev1.Pod) {
			p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}
		}),
	)

	It("a service account token: the Pod reports that no member can issue it", func(ctx SpecContext) {
		s := begin(ctx)
		s.mistake("The Pod mounts a service account token")
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), func(p *corev1.Pod) {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "token", VolumeSource: corev1.VolumeSource{
				Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{
					ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "vault", Path: "token"},
				}}},
			}})
		})
		s.shown(ctx, "Pod", "app", v1alpha1.ReasonPodUnsupported, "serviceAccountToken", "remove the volume")
	}, SpecTimeout(storyTime))

	It("a nodeSelector for a node of the host: the Pod reports which members it excludes", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.mistake("The Pod's nodeSelector selects a node of the host")
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: plainNode} })
		s.shown(ctx, "Pod", "app", v1alpha1.ReasonNodeSelectorMismatch, one, two, "nodeSelector")
	}, SpecTimeout(storyTime))

	It("an image that cannot be pulled: the Pod quotes the member's kubelet", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data")
		s.mistake("The Pod's image name is misspelled")
		s.pod(ctx, "app", using("data"), on(nodeOne), annotated(controlplane.AnnotationStartAfter, "1h"))
		leaf := until[corev1.Pod](ctx, s, x.Member(one), "app", HaveField("Spec.NodeName", Not(BeEmpty())))
		const says = `Back-off pulling image "example/mian"`
		// Write the status that a kubelet would write, because KWOK does not pull images.
		leaf.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "main", Image: "example/mian",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: says}},
		}}
		Expect(x.Member(one).API.Status().Update(ctx, leaf)).To(Succeed())
		Expect(x.Member(one).API.Create(ctx, &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: s.namespace, Name: "app.pull"},
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: s.namespace, Name: "app", UID: leaf.UID, APIVersion: "v1"},
			Type:           corev1.EventTypeWarning, Reason: "Failed", Message: says, Count: 1,
			FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(), Source: corev1.EventSource{Component: "kubelet"},
		})).To(Succeed())
		until[corev1.Pod](ctx, s, x.Host, "app", HaveField("Status.ContainerStatuses", ContainElement(
			HaveField("State.Waiting", And(Not(BeNil()), HaveField("Reason", "ImagePullBackOff"), HaveField("Message", says))))))
		AddReportEntry("Pod reports ImagePullBackOff", says)
		s.noted(ctx, "Pod", "app", "Failed", says, one)
		s.why(ctx, "Pod", "app", "ImagePullBackOff", says, "imagePullSecrets")
	}, SpecTimeout(storyTime))

	It("one member registered twice: the second registration names the first", func(ctx SpecContext) {
		kubeconfig, err := x.MemberKubeconfig(ctx, one)
		Expect(err).NotTo(HaveOccurred())
		s := &story{}
		s.mistake("The same cluster is registered twice")
		register(ctx, "again", kubeconfig)
		s.shown(ctx, "ClusterRegistration", "again", v1alpha1.ReasonDuplicateCluster, one, "Delete")
	}, SpecTimeout(storyTime))

	DescribeTable("a kubeconfig that cannot connect: the registration reports what to correct", func(ctx SpecContext, title, name, reason string,
		change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo), parts ...string,
	) {
		kubeconfig, err := x.MemberKubeconfig(ctx, one)
		Expect(err).NotTo(HaveOccurred())
		config, err := clientcmd.Load(kubeconfig)
		Expect(err).NotTo(HaveOccurred())
		chosen := config.Contexts[config.CurrentContext]
		change(config.Clusters[chosen.Cluster], config.AuthInfos[chosen.AuthInfo])
		kubeconfig, err = clientcmd.Write(*config)
		Expect(err).NotTo(HaveOccurred())
		s := &story{}
		s.mistake(title)
		register(ctx, name, kubeconfig)
		s.shown(ctx, "ClusterRegistration", name, reason, parts...)
		registration(ctx, name, And(
			says(v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonNotConnected),
			says(v1alpha1.ConditionNodeReady, metav1.ConditionFalse, v1alpha1.ReasonNotConnected),
			says(v1alpha1.ConditionReady, metav1.ConditionFalse, reason)))
	},
		Entry("a wrong token", SpecTimeout(storyTime), "The registration's kubeconfig has an invalid token", "wrong-token", v1alpha1.ReasonUnauthorized,
			func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Token = "abc" }, "rejects the credentials", "kubectl xylem register"),
		Entry("a port where nothing listens", SpecTimeout(storyTime), "The registration's kubeconfig has a wrong server port", "wrong-port", v1alpha1.ReasonUnreachable,
			func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.Server = "https://127.0.0.1:1" }, "127.0.0.1:1", "Check the server in the kubeconfig"),
	)
})
