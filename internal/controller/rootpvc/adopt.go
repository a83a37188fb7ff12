package rootpvc

import (
	"context"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

// adoptLeafClaim gives the leaf claim of the requested volume to the root. It changes only the stamp, so
// that the volume is never unbound. leaf_pv then stamps the volume and creates its host PV.
func (r *reconciler) adoptLeafClaim(ctx context.Context, o observe.Claim) error {
	if proven, err := proof.ProveLeafClaimFor(ctx, r.NewProver(), o.Root, o.Leaf, o.Observed.Leaf); err != nil || !proven {
		return err
	}
	after := o.Leaf.DeepCopy()
	mirror.OriginForRoot(r.HostID, o.Root).StampLeaf(after)
	if err := r.MemberWriter.PatchStamped(ctx, actor, o.Leaf, after); err != nil {
		return err
	}
	r.reports.EventVolumeAdopted(o.Root, o.Observed.Leaf.Name)
	return nil
}
