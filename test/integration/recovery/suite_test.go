package recovery_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
)

const (
	// settle bounds how long anything may take to come about; nothing asserts
	// that it is quick.
	settle = 90 * time.Second
	poll   = 100 * time.Millisecond
	// storyTime bounds a story.
	storyTime = 4 * time.Minute
)

// Names of the members and of their nodes in the host.
const (
	one, nodeOne = "cluster38", "kosmos-cluster38"
	two, nodeTwo = "cluster39", "kosmos-cluster39"
)

// x is shared by all walks.
var x *harness.Xylem

func TestRecovery(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(settle)
	SetDefaultEventuallyPollingInterval(poll)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "Recovery")
}

var _ = ReportAfterSuite("failures", harness.Failures)

// A panic that controller-runtime recovers shows in no object: each story looks for them.
var _ = AfterEach(func() {
	if err := x.Panics(); err != nil {
		Fail(err.Error())
	}
})

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	x, err = harness.Start(ctx, harness.Options{
		Members: controlplane.Members(one, two),
		// A backup is older than the interval of epochs before long.
		ManagerArgs: []string{"--fence-epoch-interval=1s", "--node-grace=8s"},
		Progress:    func(format string, args ...any) { GinkgoWriter.Printf(format+"\n", args...) },
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(x.Stop(ctx)).To(Succeed()) })
	_, err = x.Kubectl(ctx, x.Fleet.Host, "apply", "-f", x.Root("config", "samples", "storageclass.yaml"))
	Expect(err).NotTo(HaveOccurred())
}, NodeTimeout(5*time.Minute))

// The walks are one after the other: each concerns whole clusters, and the last
// one removes Xylem.
var _ = Describe("An operator", Ordered, ContinueOnFailure, func() {
	hostWalks()
	memberWalks()
	leaderWalks()
	uninstallWalk()
})
