package deregistration

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
)

// lacking returns the claims in the host that are not placed, although the member has their leaf claims.
// A host that was restored to a state before their placement has such claims. Without the registration, no
// controller would ask this member for their disks, and they would get new, empty ones elsewhere (I3).
func (r *Leaver) lacking(ctx context.Context, cr *v1alpha1.ClusterRegistration) ([]string, error) {
	if cr.Status.ClusterID == "" {
		return nil, nil
	}
	if shared, err := r.shared(ctx, cr); err != nil || shared {
		return nil, err // the other registration serves them
	}
	leaves, err := r.Fleet.LeafClaims(ctx, cr.Name)
	if err != nil {
		return nil, fmt.Errorf("list the claims that are still in member %s: %w", cr.Name, err)
	}
	var names []string
	for _, leaf := range leaves {
		claim, err := index.Find[corev1.PersistentVolumeClaim](ctx, r.Client, leaf.Root)
		if err != nil {
			return nil, err
		}
		if claim != nil && claim.UID == leaf.UID && claim.Annotations[v1alpha1.AnnotationPlacedIn] == "" {
			names = append(names, leaf.Root.String())
		}
	}
	return names, nil
}
