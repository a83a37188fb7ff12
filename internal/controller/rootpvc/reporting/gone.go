package reporting

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/report"
)

// OfLeaving sets the Placed condition of a claim for a member that is being deregistered, or removes it if
// problem is nil. By then, the member's root_pvc has stopped or cannot reach the member. When the cluster
// is registered again, its root_pvc owns the condition.
func OfLeaving(ctx context.Context, host *guarded.Root, claim *corev1.PersistentVolumeClaim, clusterID string, problem *mirror.Refusal, now time.Time) error {
	shown := report.PlacedCondition(claim, mirror.Reporter{ClusterID: clusterID}, problem, now)
	if shown == nil {
		return nil
	}
	return host.ApplyStatus(ctx, Actor, claim, shown)
}
