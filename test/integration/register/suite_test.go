package register_test

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

const (
	settle = suite.Settle
	// storyTime is the timeout of a story.
	storyTime = 4 * time.Minute
)

// Names of the members. The first one has storage, and the second one has none.
const one, two = "cluster38", "cluster39"

// x contains the host, its members and the manager, which all stories share.
var x *harness.Xylem

func TestRegister(t *testing.T) {
	suite.Run(t, "Register", suite.Slow)
}

var _ = suite.On(&x, func(SpecContext) harness.Options {
	return harness.Options{
		Members:     []controlplane.ClusterOptions{{Name: one}, {Name: two, NoStorage: true}},
		Unprepared:  true,
		ManagerArgs: []string{renewAfter},
	}
}, func(ctx SpecContext) {
	_, err := x.Kubectl(ctx, x.Fleet.Host, "apply", "-f", x.Root("config", "samples", "storageclass.yaml"))
	Expect(err).NotTo(HaveOccurred())
	_, err = x.Kubectl(ctx, x.Fleet.Host, "create", "namespace", users)
	Expect(err).NotTo(HaveOccurred())
})

// plugin runs the plugin against the host, and returns its output and error output.
func plugin(ctx context.Context, args ...string) (out, told string, err error) {
	return pluginAt(ctx, x.Fleet.Host.KubeconfigPath(), args...)
}

func pluginAt(ctx context.Context, kubeconfig string, args ...string) (out, told string, err error) {
	out, told, code := suite.Plugin(ctx, kubeconfig, clock.RealClock{}, args...)
	if code != 0 {
		err = errors.New(told)
	}
	GinkgoWriter.Printf("kubectl xylem %v: %v\n%s%s\n", args, err, out, told)
	return out, told, err
}
