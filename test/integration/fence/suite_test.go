package fence_test

import (
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane/kubebin"
	"github.com/xylem-io/xylem/test/integration/suite"
)

const timeout = time.Minute

// config and api connect to the API server that is both host and member.
var (
	config *rest.Config
	api    client.Client
	scheme *runtime.Scheme
)

func TestFence(t *testing.T) {
	RegisterFailHandler(Fail)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "Fence")
}

var _ = suite.Reported()

var _ = BeforeSuite(func(ctx SpecContext) {
	root, err := kubebin.Root()
	Expect(err).NotTo(HaveOccurred())
	binaries, err := kubebin.Dir(root)
	Expect(err).NotTo(HaveOccurred())
	Expect(kubebin.Check(binaries, kubebin.Core())).To(Succeed(), "run make kube first")
	environment := &envtest.Environment{
		BinaryAssetsDirectory: binaries, ControlPlaneStartTimeout: timeout, ControlPlaneStopTimeout: timeout,
		CRDDirectoryPaths: []string{filepath.Join(root, "config", "crd", "bases")}, ErrorIfCRDPathMissing: true,
	}
	config, err = environment.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(environment.Stop()).To(Succeed()) })
	scheme = runtime.NewScheme()
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	api, err = client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	Expect(api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
}, NodeTimeout(2*timeout))
