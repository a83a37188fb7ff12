package controlplane_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/csidriver"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/integration/suite"
)

const (
	// settle is the timeout for all conditions. It is long, because the tests do not assert durations.
	settle = 90 * time.Second
	poll   = 50 * time.Millisecond
	// limited is a class whose volumes are limited to limitedBytes.
	limited      = "limited"
	limitedBytes = "2147483648"
)

// fleet is the fleet that all stories share. Each story has its own namespace.
var fleet *controlplane.Fleet

func TestMain(m *testing.M) {
	// The story about a killed parent runs this program as its child.
	if os.Getenv(orphanEnv) != "" {
		os.Exit(startAndWaitToBeKilled())
	}
	os.Exit(m.Run())
}

func TestClusters(t *testing.T) {
	RegisterFailHandler(Fail)
	log.SetLogger(GinkgoLogr) // log output of the CustomResourceDefinition installer
	SetDefaultEventuallyTimeout(settle)
	SetDefaultEventuallyPollingInterval(poll)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "Clusters on loopback")
}

var _ = suite.Reported()

var _ = BeforeSuite(func(ctx SpecContext) {
	storage := controlplane.DefaultStorage()
	class := controlplane.Class(limited, storagev1.VolumeBindingImmediate, corev1.PersistentVolumeReclaimDelete)
	class.Parameters = map[string]string{csidriver.ParamMaxBytes: limitedBytes}
	storage.Classes = append(storage.Classes, class)

	var err error
	fleet, err = controlplane.Start(ctx, controlplane.Options{
		Host:     controlplane.ClusterOptions{Snapshots: true},
		Members:  []controlplane.ClusterOptions{{Name: "member", Storage: storage}},
		Progress: progress,
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		Expect(fleet.Stop(ctx)).To(Succeed())
		Expect(fleet.Dir()).NotTo(BeADirectory())
	})
})

func progress(format string, args ...any) { GinkgoWriter.Printf(format+"\n", args...) }

// member is the member that stories use.
func member() *controlplane.Cluster { return fleet.Member("member") }

// story is a namespace in one cluster.
type story struct {
	*controlplane.Cluster
	namespace string
}

func in(ctx context.Context, c *controlplane.Cluster) story {
	ns, err := c.Client().CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "story-"}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	s := story{c, ns.Name}
	// Pods can be created after the controller manager has created the account.
	Eventually(ctx, func(ctx context.Context) error {
		_, err := c.Client().CoreV1().ServiceAccounts(s.namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	}).Should(Succeed())
	return s
}

func (s story) claim(ctx context.Context, name, class, size string, change ...func(*corev1.PersistentVolumeClaim)) {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
			},
		},
	}
	for _, f := range change {
		f(claim)
	}
	_, err := s.Client().CoreV1().PersistentVolumeClaims(s.namespace).Create(ctx, claim, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// pod creates a Pod, with a claim if the claim's name is not empty.
func (s story) pod(ctx context.Context, name, claim string, change ...func(*corev1.Pod)) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "init", Image: "example/init"}},
			Containers:     []corev1.Container{{Name: "main", Image: "example/main"}},
		},
	}
	if claim != "" {
		pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}}}
	}
	for _, f := range change {
		f(pod)
	}
	_, err := s.Client().CoreV1().Pods(s.namespace).Create(ctx, pod, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func annotated(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[key] = value }
}

func (s story) getPod(name string) func(context.Context) (*corev1.Pod, error) {
	return func(ctx context.Context) (*corev1.Pod, error) {
		return s.Client().CoreV1().Pods(s.namespace).Get(ctx, name, metav1.GetOptions{})
	}
}

func (s story) getClaim(name string) func(context.Context) (*corev1.PersistentVolumeClaim, error) {
	return func(ctx context.Context) (*corev1.PersistentVolumeClaim, error) {
		return s.Client().CoreV1().PersistentVolumeClaims(s.namespace).Get(ctx, name, metav1.GetOptions{})
	}
}

func (s story) book(claim string) *ledger.Ledger {
	l, err := s.Ledger()
	Expect(err).NotTo(HaveOccurred())
	return l.ForClaim(s.namespace, claim)
}

func (s story) bound(ctx context.Context, claim string) *corev1.PersistentVolumeClaim {
	var c *corev1.PersistentVolumeClaim
	Eventually(ctx, func(ctx context.Context) (corev1.PersistentVolumeClaimPhase, error) {
		var err error
		c, err = s.getClaim(claim)(ctx)
		if err != nil {
			return "", err
		}
		return c.Status.Phase, nil
	}).Should(Equal(corev1.ClaimBound))
	return c
}

func (s story) phase(ctx context.Context, pod string, want corev1.PodPhase) *corev1.Pod {
	var p *corev1.Pod
	Eventually(ctx, func(ctx context.Context) (corev1.PodPhase, error) {
		var err error
		p, err = s.getPod(pod)(ctx)
		if err != nil {
			return "", err
		}
		return p.Status.Phase, nil
	}).Should(Equal(want))
	return p
}

// gone waits until a Pod no longer exists.
func (s story) gone(ctx context.Context, pod string) {
	Eventually(ctx, func(ctx context.Context) bool {
		_, err := s.getPod(pod)(ctx)
		return apierrors.IsNotFound(err)
	}).Should(BeTrue(), "%s still exists", pod)
}

func (s story) deletePod(ctx context.Context, name string) {
	Expect(s.Client().CoreV1().Pods(s.namespace).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
}

func (s story) deleteClaim(ctx context.Context, name string) {
	Expect(s.Client().CoreV1().PersistentVolumeClaims(s.namespace).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
}

func (s story) grow(ctx context.Context, claim, size string) {
	patch := fmt.Sprintf(`{"spec":{"resources":{"requests":{"storage":%q}}}}`, size)
	_, err := s.Client().CoreV1().PersistentVolumeClaims(s.namespace).Patch(
		ctx, claim, "application/merge-patch+json", []byte(patch), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}
