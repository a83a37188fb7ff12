package deregistration

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/report"
)

// removeOutdatedReports removes what the member's root_pvc reported about claims that are not placed in the
// member, for example because a forced deregistration withdrew them. No controller removes it later, and
// Pods would show it instead of what they really wait for.
func (r *Deregisterer) removeOutdatedReports(ctx context.Context, cr *v1alpha1.ClusterRegistration) error {
	var claims corev1.PersistentVolumeClaimList
	if err := r.Client.List(ctx, &claims, index.ReadOnly); err != nil {
		return fmt.Errorf("list the claims on which member %s reported: %w", cr.Name, err)
	}
	outdated := slices.DeleteFunc(claims.Items, func(claim corev1.PersistentVolumeClaim) bool { return !hasOutdatedReport(&claim, cr.Status.ClusterID) })
	return r.reportOnClaims(ctx, cr, outdated, nil, func(*corev1.PersistentVolumeClaim, error) {})
}

// hasOutdatedReport reports whether a claim has a problem that the member of a cluster reported, but is not
// placed in it.
func hasOutdatedReport(claim *corev1.PersistentVolumeClaim, clusterID string) bool {
	return mirror.ReporterOfRoot(claim).ClusterID == clusterID && claim.Annotations[v1alpha1.AnnotationPlacedIn] != clusterID &&
		report.ClaimConditionProblem(claim, v1alpha1.ClaimPlaced) != nil
}
