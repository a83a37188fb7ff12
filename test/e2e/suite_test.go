package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/xylem-io/xylem/test/controlplane/kubebin"
	"github.com/xylem-io/xylem/test/e2e/fleet"
)

const (
	// providerEnv is the environment variable that selects where the stories run: kind or
	// controlplane.
	providerEnv = "E2E_PROVIDER"
	// keepEnv is the environment variable that keeps the suite's clusters if it is set.
	keepEnv = "E2E_KEEP"

	// settle is the timeout of every wait, and poll is its interval. No test asserts that anything
	// is fast.
	settle = 6 * time.Minute
	poll   = 500 * time.Millisecond
	// storyTime is the timeout of a story, and setUpTime is the timeout for starting the clusters.
	storyTime, setUpTime = 20 * time.Minute, 30 * time.Minute
)

var (
	// world is the fleet on which the stories run. onKind is the same fleet if it uses kind, and
	// nil otherwise.
	world  fleet.Fleet
	onKind *fleet.Kind
	root   string
)

func TestE2E(t *testing.T) {
	if os.Getenv(providerEnv) == "" {
		t.Skipf("make test-e2e runs these tests; set %s to kind or controlplane", providerEnv)
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(settle)
	SetDefaultEventuallyPollingInterval(poll)
	EnforceDefaultTimeoutsWhenUsingContexts()
	log.SetLogger(logr.Discard()) // Disable the clients' logs.
	RunSpecs(t, "End to end")
}

func progress(format string, args ...any) { fmt.Fprintf(GinkgoWriter, format+"\n", args...) }

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	root, err = kubebin.Root()
	Expect(err).NotTo(HaveOccurred())
	switch provider := os.Getenv(providerEnv); provider {
	case "kind":
		onKind = fleet.NewKind(fleet.KindOptions{
			Dir: filepath.Join(root, fleet.KindDir), NodeImage: os.Getenv(fleet.NodeImageEnv),
			Archive: filepath.Join(root, fleet.ImageArchive), Progress: progress,
		})
		world = onKind
	case "controlplane":
		world = fleet.NewLoopback(progress)
	default:
		Fail(fmt.Sprintf("%s=%s: want kind or controlplane", providerEnv, provider))
	}
	DeferCleanup(func(ctx SpecContext) {
		if os.Getenv(keepEnv) == "" {
			Expect(world.Down(ctx)).To(Succeed())
		}
	}, NodeTimeout(setUpTime))
	if err := world.Up(ctx); err != nil {
		Fail(err.Error()) // Gomega would print the error as bytes.
	}
}, NodeTimeout(setUpTime))

// After a failure, collect all relevant information in one directory.
var _ = JustAfterEach(func(ctx SpecContext) {
	if !CurrentSpecReport().Failed() {
		return
	}
	dir := filepath.Join(root, "dist", "e2e-failed", time.Now().Format("20060102-150405"))
	collect, cancel := context.WithTimeout(ctx, storyTime)
	defer cancel()
	if err := world.Collect(collect, dir); err != nil {
		AddReportEntry("some information could not be collected", err.Error())
	}
	AddReportEntry("logs and objects of all clusters", dir)
	fmt.Fprintf(os.Stderr, "\nlogs and objects of all clusters: %s\n", dir)
}, NodeTimeout(storyTime))
