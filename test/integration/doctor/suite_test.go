package doctor_test

import (
	"context"
	"encoding/json"
	"net"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/xylem-io/xylem/internal/cli/doctor"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// storyTime is the timeout of a story.
const storyTime = 4 * time.Minute

// Names of the members and of their nodes in the host.
const (
	one, nodeOne = "cluster38", "kosmos-cluster38"
	two          = "cluster39"
)

// x contains the host, its members and the manager, which all stories share.
var x *harness.Xylem

func TestDoctor(t *testing.T) {
	suite.Run(t, "Doctor", suite.Slow)
}

var _ = suite.On(&x, func(ctx SpecContext) harness.Options {
	ip, address := nodeAddress(ctx)
	return harness.Options{
		Host:        controlplane.ClusterOptions{Kubelets: true},
		Members:     []controlplane.ClusterOptions{{Name: one}, {Name: two, NoStorage: true}},
		Snapshots:   true,
		ManagerArgs: []string{"--node-api-bind-address=" + address, "--node-api-advertise-address=" + ip, "--leader-elect"},
	}
}, func(ctx SpecContext) {
	_, err := x.Kubectl(ctx, x.Fleet.Host, "apply", "-f", x.Root("config", "samples", "storageclass.yaml"))
	Expect(err).NotTo(HaveOccurred())
})

// nodeAddress returns the address at which the manager serves the kubelet API. It is not a loopback
// address, because API servers do not connect to those.
func nodeAddress(ctx context.Context) (ip, address string) {
	GinkgoHelper()
	all, err := net.InterfaceAddrs()
	Expect(err).NotTo(HaveOccurred())
	free, err := harness.FreeAddress(ctx)
	Expect(err).NotTo(HaveOccurred())
	_, port, err := net.SplitHostPort(free)
	Expect(err).NotTo(HaveOccurred())
	for _, a := range all {
		if network, ok := a.(*net.IPNet); ok && network.IP.IsGlobalUnicast() && network.IP.To4() != nil {
			return network.IP.String(), net.JoinHostPort(network.IP.String(), port)
		}
	}
	Fail("this machine has only loopback addresses, but API servers do not connect to those")
	return "", ""
}

// ahead is a clock that is ahead of the real one.
type ahead struct {
	clock.Clock
	by time.Duration
}

func (a ahead) Now() time.Time { return a.Clock.Now().Add(a.by) }

// plugin runs the plugin as an admin of the host, and returns its output, error output and exit
// code.
func plugin(ctx context.Context, c clock.Clock, args ...string) (out, complaints string, code int) {
	return suite.Plugin(ctx, x.Fleet.Host.KubeconfigPath(), c, args...)
}

// checkup runs doctor with JSON output, and returns its findings and its exit code.
func checkup(ctx context.Context, g Gomega, c clock.Clock, args ...string) (*doctor.Checkup, int) {
	out, complaints, code := plugin(ctx, c, append([]string{"doctor", "-o", "json"}, args...)...)
	g.Expect(complaints).To(BeEmpty())
	var found doctor.Checkup
	g.Expect(json.Unmarshal([]byte(out), &found)).To(Succeed(), out)
	g.Expect(found.APIVersion).To(Equal("cli.xylem.io/v1alpha1"))
	g.Expect(found.Kind).To(Equal("Checkup"))
	return &found, code
}

// problems returns all findings with a level other than OK, as "level check cluster".
func problems(c *doctor.Checkup) []string {
	all := []string{}
	for _, f := range c.Findings {
		if f.Level != doctor.OK {
			all = append(all, strings.TrimSpace(string(f.Level)+" "+string(f.Check)+" "+f.Cluster))
		}
	}
	return all
}

// shown adds the text output of doctor to the report.
func shown(ctx context.Context, c clock.Clock, args ...string) {
	GinkgoHelper()
	out, _, _ := plugin(ctx, c, append([]string{"doctor", "--problems"}, args...)...)
	AddReportEntry("kubectl xylem doctor --problems", out)
}
