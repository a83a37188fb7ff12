package suite

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http/httptest"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/test/integration/harness"
)

// Read returns an object in a namespace, or a cluster-scoped object.
func Read[T any, P interface {
	*T
	client.Object
}](ctx context.Context, c *harness.Cluster, namespace, name string) (P, error) {
	obj := P(new(T))
	return obj, Get(ctx, c, namespace, name, obj)
}

// Get reads an object into obj, for callers that do not know its type.
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

// Unreported matches a claim without conditions. It ignores the condition Unused, which
// kube-controller-manager sets from Kubernetes 1.37 on.
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

// Rule returns the rule of an admission policy or webhook for operations on a resource.
func Rule(resource schema.GroupVersionResource, operations ...admissionv1.OperationType) admissionv1.RuleWithOperations {
	return admissionv1.RuleWithOperations{
		Operations: operations,
		Rule:       admissionv1.Rule{APIGroups: []string{resource.Group}, APIVersions: []string{resource.Version}, Resources: []string{resource.Resource}},
	}
}

// CA returns the certificate authority of a test server, in PEM.
func CA(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// Denying returns an admission policy that rejects operations on a resource unless the validation
// holds, and the policy's binding.
func Denying(name string, resource schema.GroupVersionResource, validation admissionv1.Validation, operations ...admissionv1.OperationType) []client.Object {
	meta := metav1.ObjectMeta{Name: name}
	return []client.Object{
		&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: Rule(resource, operations...)}}},
			Validations:      []admissionv1.Validation{validation},
		}},
		&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		}},
	}
}
