package suite

import (
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/xylem-io/xylem/test/integration/harness"
)

const (
	// Settle is the generous timeout of every wait. No test asserts that it is fast.
	Settle = 90 * time.Second
	poll   = 100 * time.Millisecond
	// start is the timeout for starting the clusters and preparing the suite.
	start = 5 * time.Minute
)

// Run runs the specs of a suite.
func Run(t *testing.T, name string) {
	gomega.RegisterFailHandler(ginkgo.Fail)
	gomega.SetDefaultEventuallyTimeout(Settle)
	gomega.SetDefaultEventuallyPollingInterval(poll)
	gomega.EnforceDefaultTimeoutsWhenUsingContexts()
	ginkgo.RunSpecs(t, name)
}

// On runs a suite on a harness, which it starts, prepares and stops. After each spec, it checks
// for panics, because no object shows a panic that controller-runtime recovers. Call it at the
// top level of the suite.
func On(x **harness.Xylem, options func(ginkgo.SpecContext) harness.Options, prepare func(ginkgo.SpecContext)) bool {
	ginkgo.ReportAfterSuite("failures", failures)
	ginkgo.AfterEach(func() { gomega.Expect((*x).Panics()).To(gomega.Succeed()) })
	return ginkgo.BeforeSuite(func(ctx ginkgo.SpecContext) {
		o := options(ctx)
		o.Progress = Progress
		var err error
		*x, err = harness.Start(ctx, o)
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) { gomega.Expect((*x).Stop(ctx)).To(gomega.Succeed()) })
		prepare(ctx)
	}, ginkgo.NodeTimeout(start))
}

// Progress writes a line to the spec's output.
func Progress(format string, args ...any) { ginkgo.GinkgoWriter.Printf(format+"\n", args...) }
