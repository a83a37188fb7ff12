package nodeapi_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// debuggers returns the names of a Pod's ephemeral containers.
func debuggers(pod *corev1.Pod) []string {
	names := []string{}
	for i := range pod.Spec.EphemeralContainers {
		names = append(names, pod.Spec.EphemeralContainers[i].Name)
	}
	return names
}

// notRun returns the messages of the events that report that a Pod's ephemeral containers do not
// run.
func notRun(ctx SpecContext, pod string) []string {
	GinkgoHelper()
	var events corev1.EventList
	Expect(x.Host.API.List(ctx, &events, client.InNamespace("shop"))).To(Succeed())
	messages := []string{}
	for i := range events.Items {
		if e := &events.Items[i]; e.InvolvedObject.Name == pod && e.Reason == v1alpha1.ReasonEphemeralContainersNotRun {
			messages = append(messages, e.Message)
		}
	}
	return messages
}

var _ = Describe("kubectl debug", func() {
	debug := func(ctx SpecContext, pod, name string, more ...string) {
		GinkgoHelper()
		r := kubectl(ctx, "", nil, append([]string{"debug", pod, "--image=busybox:1", "--container=" + name, "--attach=false", "--profile=baseline"}, more...)...)
		Expect(r.code).To(BeZero(), r.err)
	}
	leaf := func(ctx SpecContext, member, name string) *corev1.Pod {
		GinkgoHelper()
		pod := &corev1.Pod{}
		Expect(x.Member(member).API.Get(ctx, client.ObjectKey{Namespace: "shop", Name: name}, pod)).To(Succeed())
		return pod
	}
	leafDebuggers := func(ctx SpecContext, member, name string) func() []string {
		return func() []string { return debuggers(leaf(ctx, member, name)) }
	}

	It("adds the container in the member, and shows its status", suite.Core, func(ctx SpecContext) {
		run(ctx, "debugged", nodeOne)
		before := leaf(ctx, one, "debugged")
		debug(ctx, "debugged", "first", "--target=app", "--env=A=b")
		Eventually(ctx, leafDebuggers(ctx, one, "debugged")).WithContext(ctx).Should(Equal([]string{"first"}))
		is := leaf(ctx, one, "debugged")
		Expect(is.UID).To(Equal(before.UID))
		Expect(is.Spec.Containers).To(Equal(before.Spec.Containers))
		Expect(is.Spec.EphemeralContainers[0].TargetContainerName).To(Equal("app"))
		Expect(is.Spec.EphemeralContainers[0].Env).To(Equal([]corev1.EnvVar{{Name: "A", Value: "b"}}))

		By("adding a container in the member: it remains, and the host does not show it")
		own := is.DeepCopy()
		own.Spec.EphemeralContainers = append(own.Spec.EphemeralContainers, corev1.EphemeralContainer{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "own", Image: "busybox:1"},
		})
		Expect(x.Member(one).API.SubResource("ephemeralcontainers").Patch(ctx, own, client.MergeFrom(is))).To(Succeed())
		debug(ctx, "debugged", "second")
		Eventually(ctx, leafDebuggers(ctx, one, "debugged")).WithContext(ctx).Should(Equal([]string{"first", "own", "second"}))

		By("reporting the container's state in place of the member's kubelet") // KWOK runs no ephemeral containers
		Eventually(ctx, func() error {
			pod := leaf(ctx, one, "debugged")
			was := pod.DeepCopy()
			for _, name := range debuggers(pod) {
				pod.Status.EphemeralContainerStatuses = append(pod.Status.EphemeralContainerStatuses, corev1.ContainerStatus{
					Name: name, Image: "busybox:1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
				})
			}
			pod.Status.ObservedGeneration = pod.Generation
			return x.Member(one).API.Status().Patch(ctx, pod, client.MergeFrom(was))
		}).WithContext(ctx).Should(Succeed())
		Eventually(ctx, func(g Gomega) {
			var root corev1.Pod
			g.Expect(x.Host.API.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "debugged"}, &root)).To(Succeed())
			g.Expect(root.Status.EphemeralContainerStatuses).To(HaveExactElements(
				And(HaveField("Name", "first"), HaveField("State.Running", Not(BeNil()))), HaveField("Name", "second")))
			g.Expect(root.Status.ObservedGeneration).To(Equal(root.Generation))
		}).WithContext(ctx).Should(Succeed())

		By("reading the container's log, and running a command in it")
		r := kubectl(ctx, "", nil, "logs", "debugged", "-c", "first", "--tail=1")
		Expect(r.out).To(Equal("third line\n"), r.err)
		r = kubectl(ctx, "", nil, "exec", "debugged", "-c", "first", "--", "echo", "hello")
		Expect(r.out).To(Equal("hello\n"), r.err)
		Expect(notRun(ctx, "debugged")).To(BeEmpty())
	}, SpecTimeout(2*settle))

	It("copies the referenced objects, and omits the fields that leaves lack", func(ctx SpecContext) {
		pod := run(ctx, "referring", nodeOne)
		Expect(x.Host.API.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "tools"}, Data: map[string]string{"a": "b"}})).To(Succeed())
		was := pod.DeepCopy()
		c := corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: "tools", Image: "busybox:1", EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "tools"}}}},
		}}
		for _, mount := range pod.Spec.Containers[0].VolumeMounts { // the token, which the API server adds
			Expect(mount.Name).To(HavePrefix("kube-api-access-"))
			c.VolumeMounts = append(c.VolumeMounts, mount)
		}
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{c}
		Expect(x.Host.API.SubResource("ephemeralcontainers").Patch(ctx, pod, client.MergeFrom(was))).To(Succeed())
		Eventually(ctx, leafDebuggers(ctx, one, "referring")).WithContext(ctx).Should(Equal([]string{"tools"}))
		is := leaf(ctx, one, "referring").Spec.EphemeralContainers[0]
		Expect(is.VolumeMounts).To(BeEmpty())
		name := is.EnvFrom[0].ConfigMapRef.Name
		Expect(name).To(HavePrefix("tools.xylem-"))
		Eventually(ctx, func() error {
			return x.Member(one).API.Get(ctx, client.ObjectKey{Namespace: "shop", Name: name}, &corev1.ConfigMap{})
		}).WithContext(ctx).Should(Succeed())
	}, SpecTimeout(2*settle))

	It("reports once which permission the member's admin has not granted, and adds the container when it is granted", func(ctx SpecContext) {
		run(ctx, "ungranted", nodeTwo)
		debug(ctx, "ungranted", "first")
		Eventually(ctx, func() []string { return notRun(ctx, "ungranted") }).WithContext(ctx).Should(HaveLen(1))
		Expect(notRun(ctx, "ungranted")[0]).To(And(ContainSubstring(`"first"`), ContainSubstring("pods/ephemeralcontainers"),
			ContainSubstring("--member-kubeconfig FILE --with-debug"), ContainSubstring("debug.enabled=true")))
		grant(ctx, two, "debug")
		DeferCleanup(func(ctx SpecContext) { revoke(ctx, two, "debug") })
		Eventually(ctx, leafDebuggers(ctx, two, "ungranted")).WithContext(ctx).Should(Equal([]string{"first"}))
		Expect(notRun(ctx, "ungranted")).To(HaveLen(1))
	}, SpecTimeout(2*settle))

	It("reports why a policy in the member rejects the container", func(ctx SpecContext) {
		run(ctx, "privileged", nodeOne)
		debug(ctx, "privileged", "root", "--profile=sysadmin")
		Eventually(ctx, func() []string { return notRun(ctx, "privileged") }).WithContext(ctx).Should(HaveExactElements(
			And(ContainSubstring(`"root"`), ContainSubstring("privileged"), ContainSubstring("--profile=baseline"))))
		By("using kubectl's default profile, which the level baseline also rejects")
		debug(ctx, "privileged", "default", "--profile=general")
		Eventually(ctx, func() []string { return notRun(ctx, "privileged") }).WithContext(ctx).Should(ConsistOf(
			ContainSubstring(`"root"`), And(ContainSubstring(`"default"`), ContainSubstring("SYS_PTRACE"))))
		By("adding an allowed container: the rejected ones do not block it")
		debug(ctx, "privileged", "allowed")
		Eventually(ctx, leafDebuggers(ctx, one, "privileged")).WithContext(ctx).Should(Equal([]string{"allowed"}))
	}, SpecTimeout(2*settle))

	It("adds the container once the member is connected again", func(ctx SpecContext) {
		grant(ctx, two, "debug")
		DeferCleanup(func(ctx SpecContext) { revoke(ctx, two, "debug") })
		run(ctx, "away", nodeTwo)
		Expect(x.Fleet.Member(two).Proxy().SetMode(controlplane.Cut)).To(Succeed())
		debug(ctx, "away", "first")
		Expect(x.Fleet.Member(two).Proxy().SetMode(controlplane.Pass)).To(Succeed())
		Expect(x.AwaitReady(ctx, two)).To(Succeed())
		Eventually(ctx, leafDebuggers(ctx, two, "away")).WithContext(ctx).Should(Equal([]string{"first"}))
	}, SpecTimeout(3*settle))

	It("waits until the Pod is pushed, and then adds the container", func(ctx SpecContext) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "waiting"}}
		pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: nodeOne}
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/gate"}}
		pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:1"}}
		Expect(x.Host.API.Create(ctx, pod)).To(Succeed())
		debug(ctx, "waiting", "first")
		Expect(x.Host.API.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
		was := pod.DeepCopy()
		pod.Spec.SchedulingGates = nil
		Expect(x.Host.API.Patch(ctx, pod, client.MergeFrom(was))).To(Succeed())
		Eventually(ctx, func(g Gomega) {
			is := &corev1.Pod{}
			g.Expect(x.Member(one).API.Get(ctx, client.ObjectKeyFromObject(pod), is)).To(Succeed())
			g.Expect(debuggers(is)).To(Equal([]string{"first"}))
		}).WithContext(ctx).Should(Succeed())
	}, SpecTimeout(2*settle))
})
