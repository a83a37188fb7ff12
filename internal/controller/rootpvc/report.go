package rootpvc

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/internal/controller/rootpvc/observing"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
)

// report reports the plan's problem to the user, after a live read if the problem requires one.
func (r *reconciler) report(ctx context.Context, o observing.Claim, plan lifecycle.Plan) error {
	switch {
	case plan.Report == nil:
	case plan.Phase == lifecycle.Unconfirmed: // the cache may only lack the placement
		if _, same, err := r.Proof().RootUnchanged(ctx, o.Root); err != nil || !same {
			return err
		}
	case plan.Phase == lifecycle.InUse:
		if used, err := r.inUse(ctx, o); err != nil || !used {
			return err
		}
	}
	return r.reports.Problem(ctx, o, plan.Report)
}

// inUse reports whether another claim in the member uses the claim's volume. If none does, the
// member is about to release the volume.
func (r *reconciler) inUse(ctx context.Context, o observing.Claim) (bool, error) {
	ref := o.Observed.Leaf.Spec.ClaimRef
	other, err := index.Find[corev1.PersistentVolumeClaim](ctx, r.Live, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
	return other != nil && other.UID == ref.UID, err
}
