package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/e2e/fleet"
)

// These stories show what applications expect of any cluster: the API server, resizes and priorities.

const (
	// tokensNamespace has the Pods that read themselves from the host's API server.
	tokensNamespace = "tokens"
	// shortToken is a Pod whose tokens have the shortest lifetime that API servers issue. defaultToken has the token
	// that admission adds to every Pod.
	shortToken, defaultToken = "short", "default"
	// shortLifetime is the lifetime of shortToken's tokens.
	shortLifetime = 10 * time.Minute
)

// selfRead is what the tests' program prints about one read of its own Pod.
type selfRead struct {
	At              time.Time
	Server          string
	UID, Node       string
	Issued, Expires time.Time
	Error           string
}

// selfReads returns what a Pod has printed, as its user sees it.
func selfReads(ctx context.Context, pod string) (reads []selfRead, err error) {
	out, err := world.Host().Typed.CoreV1().Pods(tokensNamespace).GetLogs(pod, &corev1.PodLogOptions{}).DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		var r selfRead
		if !strings.HasSuffix(line, "\n") {
			break // the program has not printed the whole line yet
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return nil, fmt.Errorf("%w: %s", err, line)
		}
		reads = append(reads, r)
	}
	return reads, nil
}

// readsItself is the story of Pods that read themselves from the host's API server with client-go.
func readsItself(ctx SpecContext) {
	if onKind == nil {
		Skip("Pods do not run on this provider: test/integration covers it")
	}
	registerByPlugin(ctx, fleet.First, "--api-server", onKind.Server(fleet.HostName), "--with-logs", "--with-exec", "--with-debug")
	makeNamespace(ctx, tokensNamespace)
	apply(ctx, world.Host(), strings.NewReplacer("NAMESPACE", tokensNamespace, "CLUSTER", v1alpha1.LabelCluster+": "+fleet.First, "IMAGE", fleet.WorkloadImage,
		"DEFAULT", defaultToken, "SHORT", shortToken, "SECONDS", fmt.Sprint(int(shortLifetime.Seconds()))).Replace(`apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: NAMESPACE}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: NAMESPACE}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: reader}]
---
apiVersion: v1
kind: Pod
metadata: {name: DEFAULT, namespace: NAMESPACE, labels: {app: DEFAULT}}
spec:
  serviceAccountName: reader
  terminationGracePeriodSeconds: 1
  nodeSelector: {CLUSTER}
  tolerations: [{key: kosmos.io/node, operator: Exists, effect: NoSchedule}]
  containers:
  - name: app
    image: IMAGE
    args: [self]
    env: [{name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: SHORT, namespace: NAMESPACE, labels: {app: SHORT}}
spec:
  serviceAccountName: reader
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  nodeSelector: {CLUSTER}
  tolerations: [{key: kosmos.io/node, operator: Exists, effect: NoSchedule}]
  containers:
  - name: app
    image: IMAGE
    args: [self]
    env: [{name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
    volumeMounts: [{name: token, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}]
  volumes:
  - name: token
    projected:
      sources:
      - serviceAccountToken: {path: token, expirationSeconds: SECONDS}
      - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}
      - downwardAPI: {items: [{path: namespace, fieldRef: {fieldPath: metadata.namespace}}]}
`))
	for _, name := range []string{defaultToken, shortToken} {
		pod := runningPod(ctx, world.Host(), tokensNamespace, name)
		var first selfRead
		Eventually(func(g Gomega) {
			reads, err := selfReads(ctx, name)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(reads).NotTo(BeEmpty())
			first = reads[0]
		}).WithContext(ctx).Should(Succeed())
		Expect(first.Error).To(BeEmpty())
		Expect(first.UID).To(Equal(string(pod.UID)))
		Expect(first.Node).To(Equal(pod.Spec.NodeName))
		Expect(first.Server).To(Equal(onKind.Server(fleet.HostName)))
		AddReportEntry("lifetime of the first token of Pod "+name, first.Expires.Sub(first.Issued).String())
	}
	run(ctx, world.Host(), "kubectl", "-n", tokensNamespace, "logs", defaultToken, "--tail=1")
	run(ctx, world.Member(fleet.First), "kubectl", "-n", tokensNamespace, "get", "pods,secrets")
}

// renewsTokens is the second part of this story: the Pod continues to read itself after its first token has expired.
func renewsTokens(ctx SpecContext) {
	if onKind == nil {
		Skip("Pods do not run on this provider: test/integration covers it")
	}
	var reads []selfRead
	Eventually(func(g Gomega) {
		var err error
		reads, err = selfReads(ctx, shortToken)
		g.Expect(err).NotTo(HaveOccurred())
		last := reads[len(reads)-1]
		g.Expect(last.Error).To(BeEmpty())
		g.Expect(last.At).To(BeTemporally(">", reads[0].Expires), "the first token is still valid")
	}).WithContext(ctx).WithTimeout(shortLifetime + settle).WithPolling(5 * time.Second).Should(Succeed())
	var tokens []string
	last := time.Time{}
	for _, r := range reads {
		Expect(r.Error).NotTo(ContainSubstring("Unauthorized"), "the host must accept each token until it is replaced")
		if r.Expires != last {
			tokens = append(tokens, fmt.Sprintf("first used %s after its issue, %s before its expiry", r.At.Sub(r.Issued).Round(time.Second), r.Expires.Sub(r.At).Round(time.Second)))
			last = r.Expires
		}
	}
	Expect(len(tokens)).To(BeNumerically(">", 1))
	AddReportEntry(fmt.Sprintf("%d reads with %d tokens", len(reads), len(tokens)), strings.Join(tokens, "\n"))
	run(ctx, world.Host(), "kubectl", "-n", tokensNamespace, "logs", shortToken, "--tail=1")

	By("the member has no token when the Pods are gone")
	removeNamespace(ctx, tokensNamespace)
	Eventually(func() (int, error) {
		var list corev1.SecretList
		err := world.Member(fleet.First).API.List(ctx, &list, client.InNamespace(tokensNamespace))
		return len(list.Items), err
	}).WithContext(ctx).Should(BeZero())
}

// memoryLimit prints the memory limit of a container's cgroup, in version 1 or 2.
const memoryLimit = `for f in /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max; do if [ -e $f ]; then head -n 1 $f; fi; done`

// resizesInPlace is the story of a running Pod that gets more resources.
func resizesInPlace(ctx SpecContext) {
	if onKind == nil {
		Skip("no kubelet resizes Pods on this provider: test/integration/stories covers the objects")
	}
	const namespace = "resized"
	makeNamespace(ctx, namespace)
	apply(ctx, world.Host(), fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: app, namespace: %s, labels: {app: app}}
spec:
  terminationGracePeriodSeconds: 1
  nodeSelector: {%s: %s}
  tolerations: [{key: kosmos.io/node, operator: Exists, effect: NoSchedule}]
  containers:
  - name: app
    image: %s
    command: [sleep, infinity]
    resources: {requests: {cpu: 50m, memory: 32Mi}, limits: {cpu: 200m, memory: 64Mi}}
`, namespace, v1alpha1.LabelCluster, fleet.First, fleet.MoverImage))
	pod := runningPod(ctx, world.Host(), namespace, "app")
	limit := func() string {
		GinkgoHelper()
		return strings.TrimSpace(run(ctx, world.Host(), "kubectl", "-n", namespace, "exec", "app", "--", "sh", "-c", memoryLimit))
	}
	Expect(limit()).To(Equal(fmt.Sprint(64 << 20)))
	resize := func(cpu, memory string) {
		GinkgoHelper()
		run(ctx, world.Host(), "kubectl", "-n", namespace, "patch", "pod", "app", "--subresource", "resize", "--patch",
			fmt.Sprintf(`{"spec":{"containers":[{"name":"app","resources":{"requests":{"cpu":%q},"limits":{"cpu":%q,"memory":%q}}}]}}`, cpu, cpu, memory))
	}
	resize("300m", "96Mi")
	By("the kubelet changes the running container, and the host shows it")
	Eventually(func(g Gomega) {
		g.Expect(world.Host().API.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
		g.Expect(pod.Status.ContainerStatuses).To(HaveLen(1))
		shown := pod.Status.ContainerStatuses[0]
		g.Expect(shown.Resources).NotTo(BeNil())
		g.Expect(shown.Resources.Limits.Memory().String()).To(Equal("96Mi"))
		g.Expect(shown.Resources.Requests.Cpu().String()).To(Equal("300m"))
	}).WithContext(ctx).Should(Succeed())
	Expect(limit()).To(Equal(fmt.Sprint(96 << 20)))
	Expect(restarts(pod)).To(BeZero())
	Expect(restarts(runningPod(ctx, world.Member(fleet.First), namespace, "app"))).To(BeZero())

	By("the host shows that the Pod's node cannot give as much now")
	var node corev1.Node
	leaf := runningPod(ctx, world.Member(fleet.First), namespace, "app")
	Expect(world.Member(fleet.First).API.Get(ctx, client.ObjectKey{Name: leaf.Spec.NodeName}, &node)).To(Succeed())
	resize(node.Status.Allocatable.Cpu().String(), "96Mi") // all of it, but other Pods use some
	Eventually(func() (string, error) { return pendingResize(ctx, pod) }).WithContext(ctx).Should(Equal(corev1.PodReasonDeferred))
	why, err := user(ctx, world.Host(), "", "kubectl", "xylem", "why", "pod", "app", "--namespace", namespace)
	Expect(err).To(HaveOccurred(), "why must fail if it finds a problem")
	Expect(why).To(ContainSubstring("Wait until the Pod's node has enough free resources, or request less"))

	By("the host shows that the Pod's node can never give as much")
	Expect(world.Host().API.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, &node)).To(Succeed())
	resize(fmt.Sprintf("%dm", node.Status.Allocatable.Cpu().MilliValue()*2/3), "96Mi") // the virtual node has the sum of three nodes
	Eventually(func() (string, error) {
		if reason, err := pendingResize(ctx, pod); err != nil || reason == corev1.PodReasonInfeasible {
			return reason, err // before Kubernetes 1.37
		}
		return user(ctx, world.Host(), "", "kubectl", "-n", namespace, "get", "events", "--field-selector", "reason="+v1alpha1.ReasonNotResized)
	}).WithContext(ctx).Should(Or(Equal(corev1.PodReasonInfeasible), ContainSubstring("re-create the Pod, so that the member's scheduler chooses another node")))
	Expect(limit()).To(Equal(fmt.Sprint(96 << 20)))
	removeNamespace(ctx, namespace)
}

// pendingResize returns why a Pod's resize is pending, or "".
func pendingResize(ctx context.Context, pod *corev1.Pod) (string, error) {
	err := world.Host().API.Get(ctx, client.ObjectKeyFromObject(pod), pod)
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodResizePending && c.Status == corev1.ConditionTrue {
			return c.Reason, err
		}
	}
	return "", err
}

// hasPriority is the story of a Pod with a priority that the member's admin grants.
func hasPriority(ctx SpecContext) {
	if onKind == nil {
		Skip("this provider does not use the charts: test/integration/stories covers the objects")
	}
	const namespace, inHost, inMember = "priority", "important", "database"
	member := world.Member(fleet.Second)
	run(ctx, world.Host(), "kubectl", "create", "priorityclass", inHost, "--value=10")
	run(ctx, member, "kubectl", "create", "priorityclass", inMember, "--value=1000")
	run(ctx, member, "helm", "upgrade", "xylem-member", "charts/xylem-member", "--namespace", system, "--reset-then-reuse-values", "--set", "priorityClasses={"+inMember+"}")
	run(ctx, world.Host(), "kubectl", "patch", "clusterregistration", fleet.Second, "--type=merge", "--patch",
		fmt.Sprintf(`{"spec":{"pods":{"priorityClasses":[{"host":%q,"member":%q}]}}}`, inHost, inMember))
	makeNamespace(ctx, namespace)
	apply(ctx, world.Host(), strings.Replace(workload(namespace, "app", fleet.Second), "    spec:\n", "    spec:\n      priorityClassName: "+inHost+"\n", 1))
	Expect(runningPod(ctx, world.Host(), namespace, "app").Spec.Priority).To(HaveValue(BeEquivalentTo(10)))
	leaf := runningPod(ctx, member, namespace, "app")
	Expect(leaf.Spec.PriorityClassName).To(Equal(inMember))
	Expect(leaf.Spec.Priority).To(HaveValue(BeEquivalentTo(1000)))
	removeNamespace(ctx, namespace)
	run(ctx, world.Host(), "kubectl", "patch", "clusterregistration", fleet.Second, "--type=json", "--patch", `[{"op":"remove","path":"/spec/pods/priorityClasses"}]`)
	run(ctx, member, "kubectl", "delete", "priorityclass", inMember)
	run(ctx, world.Host(), "kubectl", "delete", "priorityclass", inHost)
}
