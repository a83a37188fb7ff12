package suite

import (
	"context"
	"fmt"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/test/integration/harness"
)

// Read reads an object of a namespace, or a cluster-scoped object.
func Read[T any, P interface {
	*T
	client.Object
}](ctx context.Context, c *harness.Cluster, namespace, name string) (P, error) {
	obj := P(new(T))
	return obj, Get(ctx, c, namespace, name, obj)
}

// Get is Read for an object of an unknown type.
func Get(ctx context.Context, c *harness.Cluster, namespace, name string, obj client.Object) error {
	namespaced, err := c.API.IsObjectNamespaced(obj)
	if err != nil {
		return fmt.Errorf("look up the scope of %T: %w", obj, err)
	}
	key := client.ObjectKey{Name: name}
	if namespaced {
		key.Namespace = namespace
	}
	return c.API.Get(ctx, key, obj) //nolint:wrapcheck // the callers look for NotFound
}

// Until polls an object until it matches, and returns it.
func Until[T any, P interface {
	*T
	client.Object
}](ctx context.Context, c *harness.Cluster, namespace, name string, match gomegatypes.GomegaMatcher, explain ...any) P {
	ginkgo.GinkgoHelper()
	var last P
	gomega.Eventually(ctx, func(ctx context.Context) (P, error) {
		var err error
		last, err = Read[T, P](ctx, c, namespace, name)
		return last, err
	}).Should(match, explain...)
	return last
}

// Unreported matches a claim without conditions. Unused does not count: kube-controller-manager sets
// it from Kubernetes 1.37 on.
func Unreported() gomegatypes.GomegaMatcher {
	return gomega.HaveField("Status.Conditions", gomega.Not(gomega.ContainElement(
		gomega.HaveField("Type", gomega.Not(gomega.Equal(corev1.PersistentVolumeClaimUnused))))))
}

// Gone waits until an object no longer exists.
func Gone[T any, P interface {
	*T
	client.Object
}](ctx context.Context, c *harness.Cluster, namespace, name string) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func(ctx context.Context) string {
		obj, err := Read[T, P](ctx, c, namespace, name)
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("%T %s in %s: %v %v", obj, name, c.Name(), err, obj)
	}).Should(gomega.BeEmpty())
}
