package suite

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/xylem-io/xylem/internal/cli"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/kubebin"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/run/reports"
)

const (
	// Settle is the generous timeout of every wait. No test asserts that anything is fast.
	Settle = 90 * time.Second
	poll   = 100 * time.Millisecond
	// start is the timeout for starting the clusters and preparing the suite.
	start = 8 * time.Minute
)

// Run runs the stories of a suite that belong to the tier in the environment. labels apply to all of
// them.
func Run(t *testing.T, name string, labels ...ginkgo.Labels) {
	t.Helper()
	gomega.RegisterFailHandler(ginkgo.Fail)
	gomega.SetDefaultEventuallyTimeout(Settle)
	gomega.SetDefaultEventuallyPollingInterval(poll)
	gomega.EnforceDefaultTimeoutsWhenUsingContexts()
	config, reporter := ginkgo.GinkgoConfiguration()
	if tier := os.Getenv(tierEnv); tier != "" {
		if filters[tier] == "" {
			t.Fatalf("%s is %q, but must be %s, %s or empty", tierEnv, tier, tierQuick, tierRest)
		}
		config.LabelFilter = filters[tier]
	}
	if os.Getenv(reports.RepeatEnv) != "" {
		config.FlakeAttempts = 2
	}
	ginkgo.RunSpecs(t, name, slices.Concat(labels...), config, reporter)
}

// On runs a suite on a harness, which it starts, prepares and stops. After each spec, it checks
// for panics, because no object shows a panic that controller-runtime has recovered. Call it at
// the top level of the suite.
func On(x **harness.Xylem, options func(ginkgo.SpecContext) harness.Options, prepare func(ginkgo.SpecContext)) bool {
	ginkgo.BeforeEach(func() { ginkgo.DeferCleanup(measured, spent()) }) // the first node, so that its cleanup is the last one
	ginkgo.AfterEach(func() { gomega.Expect((*x).Panics()).To(gomega.Succeed()) })
	return ginkgo.BeforeSuite(func(ctx ginkgo.SpecContext) {
		beginning := spent()
		o := timed(versioned(options(ctx)))
		o.Progress = Progress
		var err error
		*x, err = harness.Start(ctx, o)
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) { gomega.Expect((*x).Stop(ctx)).To(gomega.Succeed()) })
		prepare(ctx)
		measured(beginning)
	}, ginkgo.NodeTimeout(start)) && Reported()
}

// Plugin runs kubectl xylem against a cluster, and returns its output, error output and exit code.
func Plugin(ctx context.Context, kubeconfig string, c clock.Clock, args ...string) (out, complaints string, code int) {
	var stdout, stderr bytes.Buffer
	env := command.NewEnv(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &stdout, ErrOut: &stderr}, c)
	code = cli.Run(ctx, env, append([]string{"--kubeconfig", kubeconfig}, args...))
	return stdout.String(), stderr.String(), code
}

// Environment variables with minor versions of Kubernetes, such as "1.36". memberVersionsEnv lists
// the versions of the suite's members, in order and separated by commas. Without these variables,
// and for members that a test adds, the version is that of test/kube.
const (
	hostVersionEnv    = "XYLEM_HOST_VERSION"
	memberVersionsEnv = "XYLEM_MEMBER_VERSIONS"
)

// versioned returns the options, with the versions from the environment for clusters whose options
// do not set a version.
func versioned(o harness.Options) harness.Options {
	o.Host.Version = cmp.Or(o.Host.Version, os.Getenv(hostVersionEnv))
	versions := strings.Split(os.Getenv(memberVersionsEnv), ",")
	if o.Members == nil {
		o.Members = controlplane.Members("cluster38", "cluster39")
	}
	o.Members = slices.Clone(o.Members)
	for i := range min(len(o.Members), len(versions)) {
		o.Members[i].Version = cmp.Or(o.Members[i].Version, versions[i])
	}
	return o
}

// Versioned reports whether the environment sets versions.
func Versioned() bool { return os.Getenv(hostVersionEnv)+os.Getenv(memberVersionsEnv) != "" }

// From skips the spec if the cluster's Kubernetes is older than a minor version, such as "1.36".
func From(c *harness.Cluster, version, why string) {
	ginkgo.GinkgoHelper()
	served, err := c.Client().Discovery().ServerVersion()
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	if kubebin.CompareVersions(served.Major+"."+served.Minor, version) < 0 {
		ginkgo.Skip(c.Name() + " has Kubernetes " + served.GitVersion + ": " + why)
	}
}

// Progress writes a line to the spec's output.
func Progress(format string, args ...any) { ginkgo.GinkgoWriter.Printf(format+"\n", args...) }
