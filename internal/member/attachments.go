package member

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// maxRefusalBytes is the maximum length, in bytes, of a member's error text in a message.
const maxRefusalBytes = 500

// AttachmentsReadable returns why Xylem cannot list a member's VolumeAttachments, or nil if it can.
// Older versions of the xylem-member chart do not grant the permission. An error means that it is
// unknown whether Xylem can list them.
func AttachmentsReadable(ctx context.Context, live client.Reader, registration string) (*mirror.Refusal, error) {
	err := live.List(ctx, &storagev1.VolumeAttachmentList{}, client.Limit(1))
	switch {
	case err == nil:
		return nil, nil //nolint:nilnil // no refusal, as with SnapshotsServed
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return mirror.NewRefusal(v1alpha1.ReasonAttachmentsUnreadable, "member %q does not let Xylem list volumeattachments.storage.k8s.io: %s. Upgrade the chart xylem-member in the member, or apply config/member to it",
			registration, mirror.PlainText(err.Error(), maxRefusalBytes)), nil
	}
	return nil, fmt.Errorf("list VolumeAttachments: %w", err)
}

// BudgetsWritable returns why Xylem cannot keep PodDisruptionBudgets in a member, or nil if it can. Older versions of
// the xylem-member chart do not grant these permissions. An error means that it is unknown.
func BudgetsWritable(ctx context.Context, live client.Client, registration string) (*mirror.Refusal, error) {
	for _, verb := range []string{"list", "watch", "create"} {
		allowed, err := reviewPermission(ctx, live, authorizationv1.ResourceAttributes{Verb: verb, Group: policyv1.GroupName, Resource: "poddisruptionbudgets"})
		if err != nil {
			return nil, err
		}
		if !allowed {
			return mirror.NewRefusal(v1alpha1.ReasonBudgetNotEnforced, "member %q does not let Xylem %s poddisruptionbudgets, so a drain of its nodes does not respect the host's PodDisruptionBudgets. Upgrade the chart xylem-member in the member, or apply config/member to it",
				registration, verb), nil
		}
	}
	return nil, nil //nolint:nilnil // no refusal, as with SnapshotsServed
}

// ServicesWritable returns why Xylem cannot create a member's Services and EndpointSlices, or nil if it can. Older
// versions of the xylem-member chart do not grant these permissions. An error means that it is unknown.
func ServicesWritable(ctx context.Context, live client.Client, registration string) (*mirror.Refusal, error) {
	for _, permission := range servicePermissions() {
		allowed, err := reviewPermission(ctx, live, permission)
		if err != nil {
			return nil, err
		}
		if !allowed {
			return mirror.NewRefusal(v1alpha1.ReasonServicesForbidden, "member %q does not let Xylem %s %s, so its Pods don't resolve the names of the host's Services. Upgrade the chart xylem-member in the member, or apply config/member to it. If you don't need these Services, set spec.services.reflect to %s",
				registration, permission.Verb, permission.Resource, v1alpha1.ReflectNoServices), nil
		}
	}
	return nil, nil //nolint:nilnil // no refusal, as with SnapshotsServed
}

// servicePermissions returns the permissions that Xylem needs for a member's Services.
func servicePermissions() []authorizationv1.ResourceAttributes {
	var all []authorizationv1.ResourceAttributes
	for _, verb := range []string{"create", "list", "watch"} {
		all = append(all, authorizationv1.ResourceAttributes{Verb: verb, Resource: "services"}, authorizationv1.ResourceAttributes{Verb: verb, Group: discoveryv1.GroupName, Resource: "endpointslices"})
	}
	return all
}

// reviewPermission asks the member whether the manager's account has a permission.
func reviewPermission(ctx context.Context, live client.Client, permission authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &permission}}
	if err := live.Create(ctx, review); err != nil {
		return false, fmt.Errorf("review the permission to %s %s: %w", permission.Verb, permission.Resource, err)
	}
	return review.Status.Allowed, nil
}
