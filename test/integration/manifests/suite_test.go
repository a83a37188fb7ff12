package manifests_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/kubebin"
	"github.com/xylem-io/xylem/test/integration/suite"
)

const (
	// settle is the timeout of every wait.
	settle = time.Minute
	// managerAccount is the manager's user name.
	managerAccount = "system:serviceaccount:xylem-system:xylem-controller-manager"
)

var (
	fleet *controlplane.Fleet
	// admin is a cluster admin of the host.
	admin client.Client
	// root is the root of the repository.
	root string
)

func TestManifests(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(settle)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "Manifests")
}

var _ = suite.Reported()

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	root, err = kubebin.Root()
	Expect(err).NotTo(HaveOccurred())
	fleet, err = controlplane.Start(ctx, controlplane.Options{
		Members:  controlplane.Members("member"),
		Progress: func(format string, args ...any) { GinkgoWriter.Printf(format+"\n", args...) },
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(fleet.Stop(ctx)).To(Succeed()) })

	config, err := fleet.Host.RESTConfig(controlplane.Direct)
	Expect(err).NotTo(HaveOccurred())
	admin = clientOf(config)

	By("applying config/default to the host and config/member to the member")
	kubectl(ctx, fleet.Host, "apply", "--server-side", "-k", path("config", "default"))
	kubectl(ctx, fleet.Host, "wait", "--for=condition=Established", "--timeout=30s",
		"crd/clusterregistrations.cluster.xylem.io")
	kubectl(ctx, fleet.Member("member"), "apply", "--server-side", "-k", path("config", "member"))
})

// path returns the path of a file that is given relative to the root of the repository.
func path(elements ...string) string { return filepath.Join(append([]string{root}, elements...)...) }

// kubectl runs kubectl as an admin of the cluster and returns its output. It fails on an error or
// a warning.
func kubectl(ctx context.Context, c *controlplane.Cluster, args ...string) string {
	GinkgoHelper()
	command := exec.CommandContext(ctx, fleet.Kubectl(), append([]string{"--kubeconfig", c.KubeconfigPath()}, args...)...)
	command.Env = append(os.Environ(), fleet.KubectlCache())
	var out, complaints bytes.Buffer
	command.Stdout, command.Stderr = &out, &complaints
	err := command.Run()
	Expect(err).NotTo(HaveOccurred(), "kubectl %s: %s", strings.Join(args, " "), &complaints)
	Expect(complaints.String()).NotTo(ContainSubstring("Warning"), "kubectl %s", strings.Join(args, " "))
	return out.String()
}

// as returns a client of the host for a user with all RBAC permissions, so that only admission
// limits it.
func as(user string) client.Client {
	GinkgoHelper()
	config, err := fleet.Host.RESTConfig(controlplane.Direct)
	Expect(err).NotTo(HaveOccurred())
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
	return clientOf(config)
}

func clientOf(config *rest.Config) client.Client {
	GinkgoHelper()
	scheme := runtime.NewScheme()
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	Expect(snapshotv1.AddToScheme(scheme)).To(Succeed())
	c, err := client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// unique returns a name that no other test uses.
func unique(prefix string) string {
	return fmt.Sprintf("%s-%d", prefix, time.Now().UnixNano())
}

// canI returns the output of kubectl auth can-i, which exits with an error for "no".
func canI(ctx context.Context, kubeconfig string, args []string) string {
	GinkgoHelper()
	command := exec.CommandContext(ctx, fleet.Kubectl(), append([]string{"--kubeconfig", kubeconfig}, args...)...)
	command.Env = append(os.Environ(), fleet.KubectlCache())
	out, err := command.Output()
	if _, exited := errors.AsType[*exec.ExitError](err); !exited {
		Expect(err).NotTo(HaveOccurred())
	}
	return strings.TrimSpace(string(out))
}
