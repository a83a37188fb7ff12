package upgrade_test

import (
	"os"
	"slices"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/kubebin"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// fromEnv is the environment variable with the minor version that all clusters start with.
const fromEnv = "XYLEM_UPGRADE_FROM"

// Names of the members, and of their nodes in the host.
const (
	one, nodeOne = "cluster38", "kosmos-cluster38"
	two, nodeTwo = "cluster39", "kosmos-cluster39"
)

// x contains the host, its members and the manager.
var x *harness.Xylem

func TestUpgrade(t *testing.T) {
	if os.Getenv(fromEnv) == "" {
		t.Skipf("%s is not set: make test-versions runs this", fromEnv)
	}
	suite.Run(t, "Upgrade")
}

var _ = suite.On(&x, func(SpecContext) harness.Options {
	from := os.Getenv(fromEnv)
	members := controlplane.Members(one, two)
	for i := range members {
		members[i].Version = from
	}
	return harness.Options{Host: controlplane.ClusterOptions{Version: from}, Members: members}
}, func(ctx SpecContext) {
	Expect(x.Host.Create(ctx, harness.HostClass(class, nil))).To(Succeed())
})

// later returns the minor versions after the first one, oldest first. An upgrade of Kubernetes must
// not skip any of them.
func later(from string) []string {
	GinkgoHelper()
	all, err := kubebin.Versions(x.Root())
	Expect(err).NotTo(HaveOccurred())
	Expect(all).To(ContainElement(from))
	slices.SortFunc(all, kubebin.CompareVersions)
	return all[slices.Index(all, from)+1:]
}
