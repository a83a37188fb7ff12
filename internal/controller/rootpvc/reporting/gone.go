package reporting

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/report"
)

// ClusterGone sets the Placed condition of a claim whose volume stays in a member that
// is being deregistered. By then, the member's root_pvc has stopped or cannot reach the member.
// When the cluster is registered again, its root_pvc owns the condition and removes it.
func ClusterGone(ctx context.Context, host *guarded.Root, claim *corev1.PersistentVolumeClaim, cr *v1alpha1.ClusterRegistration, now time.Time) error {
	shown := report.PlacedCondition(claim, mirror.Reporter{ClusterID: cr.Status.ClusterID}, report.ClusterGone(cr), now)
	if shown == nil {
		return nil
	}
	return host.ApplyStatus(ctx, Actor, claim, shown)
}

// Forget removes the Placed condition of a claim that is not placed in a member, or no longer. The
// member's root_pvc, which set the condition, has stopped or cannot reach the member.
func Forget(ctx context.Context, host *guarded.Root, claim *corev1.PersistentVolumeClaim, cr *v1alpha1.ClusterRegistration, now time.Time) error {
	cleared := report.PlacedCondition(claim, mirror.Reporter{ClusterID: cr.Status.ClusterID}, nil, now)
	if cleared == nil {
		return nil
	}
	return host.ApplyStatus(ctx, Actor, claim, cleared)
}
