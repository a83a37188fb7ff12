package nodeapi_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

const (
	settle = suite.Settle
	// answer is the timeout for a command that is rejected.
	answer = 30 * time.Second
)

// Names of the members. The first member grants everything. The second one grants only logs, unless
// a spec grants more.
const (
	one, nodeOne = "cluster38", "kosmos-cluster38"
	two, nodeTwo = "cluster39", "kosmos-cluster39"
)

var (
	x *harness.Xylem
	// address is the address of the manager's endpoint.
	address string
	// inOne and inTwo are Pods that run in the members.
	inOne, inTwo *corev1.Pod
)

func TestNodeAPI(t *testing.T) {
	suite.Run(t, "Node API", suite.Slow)
}

var _ = AfterEach(func() {
	if CurrentSpecReport().Failed() {
		GinkgoWriter.Println(tail(x.Manager.Log()))
	}
})

// tail returns the end of a log.
func tail(log string) string {
	const most = 20_000
	return log[max(0, len(log)-most):]
}

var _ = suite.On(&x, func(ctx SpecContext) harness.Options {
	var err error
	address, err = harness.FreeAddress(ctx)
	Expect(err).NotTo(HaveOccurred())
	return harness.Options{
		Host: controlplane.ClusterOptions{Kubelets: true},
		Members: []controlplane.ClusterOptions{
			{Name: one, Nodes: 1, NoStorage: true, Kubelets: true}, {Name: two, Nodes: 1, NoStorage: true, Kubelets: true},
		},
		ManagerArgs: []string{
			"--node-api-bind-address=" + address, "--node-api-advertise-address=127.0.0.1",
			"--node-api-sessions=2000", "--node-api-member-sessions=1200",
		},
	}
}, func(ctx SpecContext) {
	for member, parts := range map[string][]string{one: {"logs", "exec", "debug", "metrics"}, two: {"logs"}} {
		for _, part := range parts {
			grant(ctx, member, part)
		}
	}
	inOne, inTwo = run(ctx, "web", nodeOne), run(ctx, "other", nodeTwo)
})

// grant grants an optional permission in a member, and revoke revokes it.
func grant(ctx context.Context, member, part string) {
	GinkgoHelper()
	_, err := x.Kubectl(ctx, x.Fleet.Member(member), "apply", "--server-side", "-k", x.Root("config", "member", part))
	Expect(err).NotTo(HaveOccurred())
}

func revoke(ctx context.Context, member, part string) {
	GinkgoHelper()
	_, err := x.Kubectl(ctx, x.Fleet.Member(member), "delete", "-k", x.Root("config", "member", part))
	Expect(err).NotTo(HaveOccurred())
}

// run runs a Pod on a virtual node, and waits until its leaf runs.
func run(ctx context.Context, name, node string) *corev1.Pod {
	GinkgoHelper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:1"}, {Name: "side", Image: "side:1"}}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	pod.Namespace = ns.Name
	Expect(client.IgnoreAlreadyExists(x.Host.API.Create(ctx, ns))).To(Succeed())
	Eventually(ctx, func() error { // the default service account is created after the namespace
		return x.Host.API.Create(ctx, pod)
	}).WithContext(ctx).Should(Succeed())
	Eventually(ctx, func(g Gomega) {
		g.Expect(x.Host.API.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
		g.Expect(pod.Status.Phase).To(Equal(corev1.PodRunning))
		g.Expect(pod.Annotations).To(HaveKey(v1alpha1.AnnotationLeafUID))
	}).WithContext(ctx).Should(Succeed())
	return pod
}

// result contains the output, error output and exit code of a kubectl command.
type result struct {
	out, err string
	code     int
}

// kubectl runs the stock kubectl against the host, with additional environment variables, and
// writes a transcript to the spec's output.
func kubectl(ctx context.Context, stdin string, variables []string, args ...string) result {
	GinkgoHelper()
	command := kubectlCommand(ctx, stdin, variables, args...)
	var out, complaints bytes.Buffer
	command.Stdout, command.Stderr = &out, &complaints
	_ = command.Run() // the exit code shows the error
	r := result{out.String(), complaints.String(), command.ProcessState.ExitCode()}
	GinkgoWriter.Printf("$ %s kubectl %s\n%s%s(exit %d)\n", strings.Join(variables, " "), strings.Join(args, " "), head(r.out), r.err, r.code)
	return r
}

// running starts kubectl as kubectl does, for commands that do not end. It returns the output so far,
// and a function that ends the command.
func running(ctx context.Context, stdin string, variables []string, args ...string) (out *gbytes.Buffer, end func()) {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(ctx)
	command := kubectlCommand(ctx, stdin, variables, args...)
	out = gbytes.NewBuffer()
	command.Stdout, command.Stderr = out, GinkgoWriter
	Expect(command.Start()).To(Succeed())
	return out, func() {
		cancel()
		_ = command.Wait() // the test ended it
	}
}

func kubectlCommand(ctx context.Context, stdin string, variables []string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, x.Fleet.Kubectl(), append([]string{"--kubeconfig", x.Fleet.Host.KubeconfigPath(), "-n", "shop"}, args...)...)
	command.Env = append(append(os.Environ(), x.Fleet.KubectlCache()), variables...)
	command.Stdin = strings.NewReader(stdin)
	return command
}

// appendLog appends a line to the log of all containers in member one. The caller must restore it
// with resetLog.
func appendLog(line string) {
	GinkgoHelper()
	file, err := os.OpenFile(x.Fleet.Member(one).KubeletLogFile(), os.O_APPEND|os.O_WRONLY, 0o600)
	Expect(err).NotTo(HaveOccurred())
	_, err = file.WriteString("2026-11-01T00:00:03.000000000Z stdout F " + line + "\n")
	Expect(err).NotTo(HaveOccurred())
	Expect(file.Close()).To(Succeed())
}

func resetLog() {
	Expect(os.WriteFile(x.Fleet.Member(one).KubeletLogFile(), []byte(controlplane.KubeletLog), 0o600)).To(Succeed())
}

// head returns the beginning of an output.
func head(s string) string { return s[:min(len(s), 2000)] }
