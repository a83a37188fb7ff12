package nodeapi_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// The streaming protocols of kubectl.
var (
	webSocket = []string{"KUBECTL_REMOTE_COMMAND_WEBSOCKETS=true", "KUBECTL_PORT_FORWARD_WEBSOCKETS=true"}
	spdy      = []string{"KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false", "KUBECTL_PORT_FORWARD_WEBSOCKETS=false"}
)

var _ = Describe("kubectl", func() {
	It("shows a virtual node's address and port", func(ctx SpecContext) {
		var node corev1.Node
		Expect(x.Host.API.Get(ctx, client.ObjectKey{Name: nodeOne}, &node)).To(Succeed())
		_, port, err := net.SplitHostPort(address)
		Expect(err).NotTo(HaveOccurred())
		Expect(fmt.Sprint(node.Status.DaemonEndpoints.KubeletEndpoint.Port)).To(Equal(port))
		Expect(node.Status.Addresses).To(ContainElement(corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}))
	}, SpecTimeout(settle))

	DescribeTable("logs", func(ctx SpecContext, want string, args ...string) {
		r := kubectl(ctx, "", nil, append([]string{"logs"}, args...)...)
		Expect(r.code).To(BeZero(), r.err)
		Expect(r.out).To(Equal(want))
	},
		Entry("of one container", suite.Core, "first line\nsecond line\nthird line\n", "web", "-c", "app", SpecTimeout(settle)),
		Entry("the last lines", "third line\n", "web", "-c", "app", "--tail=1", SpecTimeout(settle)),
		Entry("the first bytes", "first", "web", "-c", "app", "--limit-bytes=5", SpecTimeout(settle)),
		Entry("of the previous container", "earlier line\n", "web", "-c", "app", "--previous", SpecTimeout(settle)),
		Entry("with times", "2026-11-01T00:00:02.000000000Z third line\n", "web", "-c", "app", "--tail=1", "--timestamps", SpecTimeout(settle)),
		Entry("since a time", "third line\n", "web", "-c", "app", "--since-time=2026-11-01T00:00:02Z", SpecTimeout(settle)),
		Entry("of all containers", "third line\nthird line\n", "web", "--all-containers", "--tail=1", SpecTimeout(settle)),
		Entry("in a member that grants only logs", "third line\n", "other", "-c", "app", "--tail=1", SpecTimeout(settle)),
	)

	It("follows logs as they grow", func(ctx SpecContext) {
		out, end := running(ctx, "", nil, "logs", "-f", "--tail=1", "web", "-c", "app")
		defer end()
		Eventually(ctx, out).Should(gbytes.Say("third line\n"))
		DeferCleanup(resetLog)
		appendLog("fourth line")
		Eventually(ctx, out).Should(gbytes.Say("fourth line\n"))
		end()
		Eventually(ctx, sessions).WithContext(ctx).Should(BeZero(), "the session must end with its client")
	}, SpecTimeout(settle))

	for name, way := range map[string][]string{"WebSocket": webSocket, "SPDY": spdy} {
		Context("by "+name, func() {
			It("runs commands with input, and returns their output, error output and exit codes", suite.Core, func(ctx SpecContext) {
				r := kubectl(ctx, "", way, "exec", "web", "-c", "app", "--", "sh", "-c", "echo out; echo complaint >&2; exit 7")
				// KWOK reports an exit code as text. In test/e2e, kubelets report it as kubectl
				// expects.
				Expect(r.out).To(Equal("out\n"))
				Expect(r.err).To(And(HavePrefix("complaint\n"), ContainSubstring("exit status 7")))
				Expect(r.code).NotTo(BeZero())
				input := strings.Repeat("a line of input\n", 20_000)
				// KWOK returns all of the input and then does not end, even without Xylem.
				out, end := running(ctx, input, way, "exec", "-i", "web", "-c", "app", "--", "cat")
				defer end()
				length := func() int { return len(out.Contents()) }
				Eventually(ctx, length).Should(BeNumerically(">=", len(input)))
				Consistently(ctx, length).WithTimeout(time.Second).Should(Equal(len(input)))
				end()
				Expect(strings.Compare(string(out.Contents()), input)).To(BeZero(), "the output must be the same as the input")
				r = kubectl(ctx, "", way, "exec", "web", "-c", "app", "--", "echo", "a b", "$HOME", "ü&?#%2f")
				Expect(r.out).To(Equal("a b $HOME ü&?#%2f\n"))
			}, SpecTimeout(2*settle))

			It("attaches", suite.Core, func(ctx SpecContext) {
				out, end := running(ctx, "", way, "attach", "web", "-c", "app")
				defer end()
				DeferCleanup(resetLog)
				Eventually(ctx, func() string {
					appendLog("later line") // KWOK shows only lines that it logs after kubectl has attached
					return string(out.Contents())
				}).Should(ContainSubstring("later line\n"))
				end()
				Eventually(ctx, x.Manager.Log).WithContext(ctx).Should(MatchRegexp(`"verb": "attach".*"code": 101`))
			}, SpecTimeout(settle))

			It("copies a file from a Pod", suite.Core, func(ctx SpecContext) { // when a file is copied into a Pod, KWOK waits forever, even without Xylem
				to := filepath.Join(GinkgoT().TempDir(), "to")
				r := kubectl(ctx, "", way, "cp", "web:log", to, "-c", "app")
				Expect(r.code).To(BeZero(), r.err)
				Expect(os.ReadFile(to)).To(BeEquivalentTo(controlplane.KubeletLog))
			}, SpecTimeout(settle))

			It("forwards ports", suite.Core, func(ctx SpecContext) {
				free, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
				Expect(err).NotTo(HaveOccurred())
				local := free.Addr().String()
				Expect(free.Close()).To(Succeed())
				_, port, err := net.SplitHostPort(local)
				Expect(err).NotTo(HaveOccurred())
				_, end := running(ctx, "", way, "port-forward", "web", port+":80")
				defer end()
				Eventually(ctx, func(g Gomega) {
					r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+local+"/healthz", nil)
					g.Expect(err).NotTo(HaveOccurred())
					response, err := http.DefaultClient.Do(r)
					g.Expect(err).NotTo(HaveOccurred())
					defer func() { _ = response.Body.Close() }()
					g.Expect(response).To(HaveHTTPStatus(http.StatusOK))
				}).WithContext(ctx).Should(Succeed())
			}, SpecTimeout(settle))
		})
	}

	It("leaves no sessions behind", func(ctx SpecContext) {
		Eventually(ctx, sessions).WithContext(ctx).Should(BeZero())
	}, SpecTimeout(settle))
})

// asManager returns a client of the host that acts as the manager, because only the manager may
// write Xylem's records.
func asManager() client.Client {
	GinkgoHelper()
	config, err := x.Fleet.Host.RESTConfig(controlplane.Direct)
	Expect(err).NotTo(HaveOccurred())
	config.Impersonate.UserName = harness.HostUser
	manager, err := client.New(config, client.Options{})
	Expect(err).NotTo(HaveOccurred())
	return manager
}

// Each error is one line, appears quickly, and contains a remedy.
var _ = Describe("failures", func() {
	refused := func(ctx SpecContext, says string, variables []string, args ...string) {
		GinkgoHelper()
		limited, cancel := context.WithTimeout(ctx, answer)
		defer cancel()
		r := kubectl(limited, "", variables, args...)
		Expect(limited.Err()).NotTo(HaveOccurred(), "kubectl hangs")
		Expect(r.code).NotTo(BeZero())
		Expect(r.err).To(ContainSubstring(says))
		Expect(strings.Split(strings.TrimSpace(r.err), "\n")).To(HaveLen(1), r.err)
	}

	It("names the permission that the member's admin has not granted", func(ctx SpecContext) {
		for _, way := range [][]string{webSocket, spdy} {
			refused(ctx, "--member-kubeconfig FILE --with-exec", way, "exec", "other", "-c", "app", "--", "true")
		}
	}, SpecTimeout(settle))

	It("reports that a container does not exist", func(ctx SpecContext) {
		refused(ctx, "none", nil, "logs", "web", "-c", "none")
	}, SpecTimeout(settle))

	It("reports that the leaf was replaced (I8)", func(ctx SpecContext) {
		swapped := run(ctx, "swapped", nodeOne)
		By("changing the recorded UID as the manager would, because Xylem removes a replaced leaf immediately")
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"xylem.io/leaf-uid":"00000000-0000-0000-0000-000000000000"}}}`))
		Expect(asManager().Status().Patch(ctx, swapped, patch)).To(Succeed())
		refused(ctx, "was replaced", nil, "logs", "swapped", "-c", "app")
		refused(ctx, "was replaced", webSocket, "exec", "swapped", "-c", "app", "--", "true")
	}, SpecTimeout(2*settle))

	It("reports that the member is away", func(ctx SpecContext) {
		Expect(x.Fleet.Member(two).Proxy().SetMode(controlplane.Cut)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(x.Fleet.Member(two).Proxy().SetMode(controlplane.Pass)).To(Succeed())
			Expect(x.AwaitReady(ctx, two)).To(Succeed())
		})
		refused(ctx, "member", nil, "logs", "other", "-c", "app")
	}, SpecTimeout(2*settle))
})
