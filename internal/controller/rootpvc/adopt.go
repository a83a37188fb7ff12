package rootpvc

import (
	"context"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/proof/adoption"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

// adopt gives the leaf claim of the requested volume to the root. It changes only the stamp, so
// that the volume is never unbound. leaf_pv then stamps the volume and creates its host PV.
func (r *reconciler) adopt(ctx context.Context, o observe.Claim) error {
	if proven, err := adoption.LeafClaimFor(ctx, r.Proof(), o.Root, o.Leaf, o.Observed.Leaf); err != nil || !proven {
		return err
	}
	after := o.Leaf.DeepCopy()
	mirror.OriginFor(r.HostID, o.Root).Stamp(after)
	if err := r.Leaf.Patch(ctx, actor, o.Leaf, after); err != nil {
		return err
	}
	r.reports.EventAdopted(o.Root, o.Observed.Leaf.Name)
	return nil
}
