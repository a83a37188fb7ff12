package charts_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/kubebin"
	"github.com/xylem-io/xylem/test/integration/suite"
)

const (
	// settle is the timeout for all conditions.
	settle = time.Minute
	// restricted is a namespace that enforces the Pod Security level "restricted".
	restricted = "xylem-system"
)

var (
	fleet *controlplane.Fleet
	// root is the path of the repository.
	root                             string
	helmPath, promtoolPath, helmHome string
)

func TestCharts(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(settle)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "Charts")
}

var _ = suite.Reported()

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	root, err = kubebin.Root()
	Expect(err).NotTo(HaveOccurred())
	helmHome = GinkgoT().TempDir()
	helmPath, err = tool(ctx, "HELM", "helm")
	Expect(err).NotTo(HaveOccurred())
	promtoolPath, err = tool(ctx, "PROMTOOL", "promtool", "remove_all_sd")
	Expect(err).NotTo(HaveOccurred())
	fleet, err = controlplane.Start(ctx, controlplane.Options{
		Progress: func(format string, args ...any) { GinkgoWriter.Printf(format+"\n", args...) },
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(fleet.Stop(ctx)).To(Succeed()) })

	makeNamespace(ctx)
	By("installing the Prometheus operator's CRDs from its module")
	module := "github.com/prometheus-operator/prometheus-operator"
	tools := path("test", "tools", "monitoring")
	_, err = run(ctx, "", "go", "-C", tools, "mod", "download", module)
	Expect(err).NotTo(HaveOccurred())
	directory, err := run(ctx, "", "go", "-C", tools, "list", "-m", "-f", "{{.Dir}}", module)
	Expect(err).NotTo(HaveOccurred())
	for _, kind := range []string{"servicemonitors", "prometheusrules"} {
		kubectl(ctx, "", "apply", "--server-side", "-f",
			filepath.Join(strings.TrimSpace(directory), "example", "prometheus-operator-crd", "monitoring.coreos.com_"+kind+".yaml"))
		kubectl(ctx, "", "wait", "--for=condition=Established", "--timeout=30s", "crd/"+kind+".monitoring.coreos.com")
	}
}, NodeTimeout(15*time.Minute)) // to build the tools

// makeNamespace creates the namespace in which the charts are installed.
func makeNamespace(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "", "create", "namespace", restricted)
	for _, mode := range []string{"enforce", "warn"} {
		kubectl(ctx, "", "label", "namespace", restricted, "pod-security.kubernetes.io/"+mode+"=restricted")
	}
}
