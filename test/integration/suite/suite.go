package suite

import (
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/xylem-io/xylem/test/integration/harness"
)

const (
	// Settle bounds how long anything may take to happen. It is generous: nothing
	// asserts that it is quick.
	Settle = 90 * time.Second
	poll   = 100 * time.Millisecond
	// start bounds the start of the clusters and what the suite prepares.
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

// On has a suite run on a harness, which it starts, prepares and stops. After each spec it
// looks for panics: one that controller-runtime recovers shows in no object. Call it at
// the top level of the suite.
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
