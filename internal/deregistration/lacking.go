package deregistration

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// listUnplacedClaims returns the claims in the host that are not placed, although the member has their leaf claims.
// A host that was restored to a state before their placement has such claims. Without the registration, no
// controller would ask this member for their disks, and they would get new, empty ones elsewhere (I3).
func (r *Deregisterer) listUnplacedClaims(ctx context.Context, cr *v1alpha1.ClusterRegistration) ([]string, error) {
	leaves, err := r.Fleet.ListLeafClaims(ctx, cr.Name)
	if err != nil {
		return nil, fmt.Errorf("list the claims that are still in member %s: %w", cr.Name, err)
	}
	var names []string
	for _, leaf := range leaves {
		claim, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, r.Client, leaf.Root)
		if err != nil {
			return nil, err
		}
		if claim == nil || claim.UID != leaf.UID || claim.Annotations[v1alpha1.AnnotationPlacedIn] != "" {
			continue
		}
		promise, err := r.promiseNamedBy(ctx, claim)
		if err != nil {
			return nil, err
		}
		if promise == nil || !hostpv.IsPromiseReleasedFrom(promise, cr.Status.ClusterID) { // else other members may fulfill it
			names = append(names, leaf.Root.String())
		}
	}
	return names, nil
}

// recordUnplacedClaims records the claims whose disks a forced deregistration leaves in the member. No host PV
// names these disks.
func (r *Deregisterer) recordUnplacedClaims(ctx context.Context, cr *v1alpha1.ClusterRegistration, l *remainingObjects) error {
	if !l.forced {
		return nil
	}
	for _, name := range l.unplacedClaims {
		if err := r.Records.RecordAbandoned(ctx, r.hostWriter(cr), cr.Status.ClusterID,
			fmt.Sprintf("registration %q (%s=true): the disk of claim %q, whose placement the host does not record", cr.Name, v1alpha1.AnnotationForceDeregister, name)); err != nil {
			return err
		}
	}
	return nil
}
