package recovery_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

const (
	settle = suite.Settle
	// storyTime is the timeout of a story.
	storyTime = 4 * time.Minute
)

// Names of the members, and of their nodes in the host.
const (
	one, nodeOne = "cluster38", "kosmos-cluster38"
	two, nodeTwo = "cluster39", "kosmos-cluster39"
)

// x contains the host, its members and the manager, which all stories share.
var x *harness.Xylem

func TestRecovery(t *testing.T) {
	suite.Run(t, "Recovery", suite.Slow)
}

var _ = suite.On(&x, func(SpecContext) harness.Options {
	return harness.Options{
		Members: controlplane.Members(one, two),
		// Epochs are short, so that a backup is soon older than an epoch.
		ManagerArgs: []string{"--fence-epoch-interval=1s", "--node-grace=" + suite.NodeGrace.String()},
	}
}, func(ctx SpecContext) {
	_, err := x.Kubectl(ctx, x.Fleet.Host, "apply", "-f", x.Root("config", "samples", "storageclass.yaml"))
	Expect(err).NotTo(HaveOccurred())
})

// The stories run sequentially, because each affects whole clusters, and the last one removes
// Xylem.
var _ = Describe("An operator", Ordered, ContinueOnFailure, func() {
	hostWalks()
	memberWalks()
	leaderWalks()
	uninstallWalk()
})
