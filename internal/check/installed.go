package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/wording"
)

// Installation describes the installation that CheckInstalled checks.
type Installation struct {
	// Deployment and ServiceAccount are the names of the manager's objects in the checker's
	// namespace.
	Deployment, ServiceAccount string
	// Lease is the Lease that the leading replica holds in the checker's namespace.
	Lease string
	// Policy is the admission policy that reserves Xylem's keys.
	Policy string
	// RequiredRules are the permissions that the manager's ServiceAccount must have.
	RequiredRules []RequiredRules
}

// RequiredRules are RBAC rules that must be granted in a namespace, or cluster-wide if Namespace is empty.
type RequiredRules struct {
	Namespace string              `json:"namespace,omitempty"`
	Rules     []rbacv1.PolicyRule `json:"rules"`
}

// CheckInstalled reports whether an installation works. It repeats failed checks until the context
// ends.
func (c *Checker) CheckInstalled(ctx context.Context, i Installation) error {
	var renewed metav1.MicroTime
	return c.runChecks(ctx, []namedCheck{
		{"the API server serves ClusterRegistrations", func(ctx context.Context) error {
			return c.Client.List(ctx, &v1alpha1.ClusterRegistrationList{}, client.Limit(1))
		}},
		{"the CSIDriver " + v1alpha1.ProvisionerName + " has the settings that the scheduler needs", func(ctx context.Context) error {
			return c.checkCSIDriver(ctx, v1alpha1.ProvisionerName, true)
		}},
		{"the CSIDriver " + v1alpha1.PromiseDriverName + " has the settings that the scheduler needs", func(ctx context.Context) error {
			return c.checkCSIDriver(ctx, v1alpha1.PromiseDriverName, false)
		}},
		{"the policy " + i.Policy + " protects Xylem's keys", func(ctx context.Context) error {
			return c.checkReservedKeysPolicy(ctx, i.Policy)
		}},
		{"the manager's ServiceAccount has its permissions", func(ctx context.Context) error { return c.checkPermissions(ctx, i) }},
		{"all manager Pods are ready", func(ctx context.Context) error { return c.checkDeployment(ctx, i.Deployment) }},
		{"one of the managers is the leader", func(ctx context.Context) error { return c.checkLeaderRenews(ctx, i.Lease, &renewed) }},
	})
}

func (c *Checker) checkCSIDriver(ctx context.Context, name string, capacity bool) error {
	var driver storagev1.CSIDriver
	if err := c.Client.Get(ctx, client.ObjectKey{Name: name}, &driver); err != nil {
		return err
	}
	if s := driver.Spec; ptr.Deref(s.StorageCapacity, false) != capacity || ptr.Deref(s.AttachRequired, true) {
		return fmt.Errorf("storageCapacity must be %t, and attachRequired must be false. The leading manager sets both fields. If they do not change, check the manager's log", capacity)
	}
	return nil
}

// checkReservedKeysPolicy tries to create, in a dry run, a claim with a reserved finalizer. The policy must reject it.
// The policy in config/keys would remove a reserved label or annotation.
func (c *Checker) checkReservedKeysPolicy(ctx context.Context, name string) error {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Namespace, GenerateName: "xylem-check-",
			Finalizers: []string{v1alpha1.FinalizerLeafVolume},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
		},
	}
	err := c.Client.Create(ctx, claim, client.DryRunAll)
	switch {
	case err == nil:
		return fmt.Errorf("the API server accepted a claim with the finalizer %s. Install the policy again with helm upgrade, or from config/policy", v1alpha1.FinalizerLeafVolume)
	case wording.DeniedByPolicy(err, name):
		return nil
	}
	return fmt.Errorf("dry-run the creation of a claim that the policy must reject: %w", err)
}

// checkPermissions checks whether the manager's ServiceAccount has each of the permissions.
func (c *Checker) checkPermissions(ctx context.Context, i Installation) error {
	user := "system:serviceaccount:" + c.Namespace + ":" + i.ServiceAccount
	groups := []string{"system:serviceaccounts", "system:serviceaccounts:" + c.Namespace, "system:authenticated"}
	var missing []string
	for _, right := range i.RequiredRules {
		for _, attributes := range PermissionsOf(right) {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: user, Groups: groups, ResourceAttributes: &attributes,
			}}
			if err := c.Client.Create(ctx, review); err != nil {
				return fmt.Errorf("check whether %s may %s: %w", user, DescribePermission(attributes), err)
			}
			if !review.Status.Allowed {
				missing = append(missing, DescribePermission(attributes))
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s may not %s. Install the chart with rbac.create=true, or bind the account to roles as in config/rbac", user, strings.Join(missing, ", "))
	}
	return nil
}

// PermissionsOf returns the individual permissions that rules grant.
func PermissionsOf(r RequiredRules) []authorizationv1.ResourceAttributes {
	var out []authorizationv1.ResourceAttributes
	for _, rule := range r.Rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, whole := range rule.Resources {
				plain, sub, _ := strings.Cut(whole, "/")
				for _, verb := range rule.Verbs {
					for _, name := range names {
						out = append(out, authorizationv1.ResourceAttributes{
							Namespace: r.Namespace, Group: group, Version: "*", Resource: plain, Subresource: sub, Verb: verb, Name: name,
						})
					}
				}
			}
		}
	}
	return out
}

// DescribePermission returns a permission's verb, resource and scope.
func DescribePermission(a authorizationv1.ResourceAttributes) string {
	what := a.Resource
	if a.Subresource != "" {
		what += "/" + a.Subresource
	}
	if a.Group != "" {
		what += "." + a.Group
	}
	words := []string{a.Verb, what}
	if a.Name != "" {
		words = append(words, a.Name)
	}
	if a.Namespace != "" {
		words = append(words, "in "+a.Namespace)
	}
	return strings.Join(words, " ")
}

// checkDeployment checks that all Pods of a Deployment are ready and match its latest template.
func (c *Checker) checkDeployment(ctx context.Context, name string) error {
	var d appsv1.Deployment
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, &d); err != nil {
		return err
	}
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	if want == 0 {
		return fmt.Errorf("deployment %s/%s is scaled to 0", c.Namespace, name)
	}
	s := d.Status
	old := s.Replicas - s.UpdatedReplicas
	if s.ObservedGeneration >= d.Generation && s.UpdatedReplicas >= want && old == 0 && s.AvailableReplicas >= want {
		return nil
	}
	why := ""
	if i := slices.IndexFunc(s.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Status != corev1.ConditionTrue || c.Type == appsv1.DeploymentReplicaFailure
	}); i >= 0 {
		why = " (" + s.Conditions[i].Message + ")"
	}
	return fmt.Errorf("%d of %d Pods are up to date and ready%s. To find the cause, run kubectl -n %s get pods and kubectl -n %s logs deployment/%s",
		max(0, s.AvailableReplicas-old), want, why, c.Namespace, c.Namespace, name)
}

// checkLeaderRenews checks that the Lease is renewed between two reads, so the check does not depend on clocks.
func (c *Checker) checkLeaderRenews(ctx context.Context, name string, seen *metav1.MicroTime) error {
	var lease coordinationv1.Lease
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, &lease); err != nil {
		return err
	}
	if lease.Spec.RenewTime == nil {
		return fmt.Errorf("lease %s/%s was never renewed", c.Namespace, name)
	}
	before := *seen
	*seen = *lease.Spec.RenewTime
	if before.IsZero() || before.Equal(seen) {
		return fmt.Errorf("lease %s/%s has not been renewed since %s. To find the cause, run kubectl -n %s logs -l control-plane=controller-manager",
			c.Namespace, name, seen, c.Namespace)
	}
	return nil
}

// isNotFoundOrUnserved reports whether an error means that an object or its kind does not exist.
func isNotFoundOrUnserved(err error) bool {
	return apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
}
