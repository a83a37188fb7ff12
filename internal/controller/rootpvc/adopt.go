package rootpvc

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/controller/rootpvc/observing"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// adopt gives the leaf claim of the requested volume to the root. It changes only the stamp, so
// that the volume is never unbound. leaf_pv then stamps the volume and creates its host PV.
func (r *reconciler) adopt(ctx context.Context, o observing.Claim) error {
	if proven, err := r.stillAsked(ctx, o); err != nil || !proven {
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

// stillAsked proves three facts by live reads: the root still exists and requests the volume, so
// the earlier claim with that name is gone; the host has no PV that could represent the volume; and
// the volume is unchanged.
func (r *reconciler) stillAsked(ctx context.Context, o observing.Claim) (bool, error) {
	root, err := index.Find[corev1.PersistentVolumeClaim](ctx, r.HostLive, client.ObjectKeyFromObject(o.Root))
	if err != nil || root == nil || root.UID != o.Root.UID || !hostpv.Requests(root, o.Observed.Leaf, r.Member) {
		return false, err
	}
	for _, collides := range []bool{false, true} {
		pv, err := index.Find[corev1.PersistentVolume](ctx, r.HostLive, index.Named(hostpv.Name(o.Observed.Leaf.Name, r.ClusterID, collides)))
		if err != nil {
			return false, err
		}
		if pv == nil {
			continue
		}
		cluster, leaf, _, ours := hostpv.LeafOf(pv)
		if pv.Name == root.Spec.VolumeName || ours && cluster == r.ClusterID && leaf == o.Observed.Leaf.Name {
			return false, nil // not in the cache yet
		}
	}
	volume, err := index.Find[corev1.PersistentVolume](ctx, r.Live, index.Named(o.Observed.Leaf.Name))
	if err != nil || volume == nil || volume.UID != o.Observed.Leaf.UID || volume.Spec.ClaimRef == nil {
		return false, err
	}
	return volume.Spec.ClaimRef.UID == o.Leaf.UID && hostpv.Requests(root, volume, r.Member), nil
}
