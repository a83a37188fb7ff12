package proof

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
)

// LeafVolume is the proof of the state of a leaf PV in the member.
type LeafVolume struct {
	witness *Witness
	name    string
	pv      *corev1.PersistentVolume // nil if it does not exist
	stamped bool
}

// ProveLeafVolume proves by a live read that wanted accepts the leaf PV with the given name. wanted
// receives nil if the PV does not exist.
func (p Prover) ProveLeafVolume(ctx context.Context, name string, wanted func(*corev1.PersistentVolume) bool) (LeafVolume, bool, error) {
	began := p.Clock.Now()
	pv, err := index.FindObject[corev1.PersistentVolume](ctx, p.Live, index.ClusterScopedKey(name))
	if err != nil || !wanted(pv) {
		return LeafVolume{}, false, err
	}
	if pv == nil {
		return LeafVolume{witness: p.newWitness(began, "", ""), name: name}, true, nil
	}
	_, stamped := mirror.LeafOriginFromHost(p.HostID, pv)
	return LeafVolume{p.newWitness(began, pv.UID, pv.ResourceVersion), name, pv, stamped}, true, nil
}

// IsLeafAbsent accepts a leaf PV that does not exist.
func IsLeafAbsent(pv *corev1.PersistentVolume) bool { return pv == nil }

// IsLeafRetained reports whether the reclaim policy keeps a leaf PV after its claim is deleted. It also
// accepts a missing leaf PV.
func IsLeafRetained(pv *corev1.PersistentVolume) bool {
	return pv == nil || pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
}

// OutlivesClaim reports whether a leaf PV remains when a leaf claim that names it is deleted: the PV is
// retained, or bound to another claim.
func OutlivesClaim(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	return IsLeafRetained(pv) || pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID != "" && pv.Spec.ClaimRef.UID != claim.UID
}

// ProveLeafClaimGone proves by a live read that the member has no leaf claim for a root. Other objects
// with the root's name do not count.
func (p Prover) ProveLeafClaimGone(ctx context.Context, root *corev1.PersistentVolumeClaim) (bool, error) {
	leaf, err := p.readLeafClaimLive(ctx, root)
	return leaf == nil, err
}

// ProveLeafPodGone proves by a live read that the member has no leaf Pod of a root.
func (p Prover) ProveLeafPodGone(ctx context.Context, root *corev1.Pod) (bool, error) {
	key := client.ObjectKeyFromObject(root)
	leaf, origin, err := index.FindStamped[corev1.Pod](ctx, p.Live, p.HostID, key)
	if err != nil {
		return false, fmt.Errorf("prove that the leaf of Pod %s is gone: %w", key, err)
	}
	return leaf == nil || origin.UID != root.UID, nil
}

// ProveLeafUnbound proves by a live read that no leaf claim for a root is bound.
func (p Prover) ProveLeafUnbound(ctx context.Context, root *corev1.PersistentVolumeClaim) (bool, error) {
	leaf, err := p.readLeafClaimLive(ctx, root)
	return leaf == nil || leaf.Spec.VolumeName == "", err
}

// ProveUnprovisioned proves that the member has no volume for a root. Live reads show that the root's
// leaf claim is not bound, and that the member has no PV with the name that a provisioner uses. The
// cache contains no PV with another name for the leaf claim.
func (p Prover) ProveUnprovisioned(ctx context.Context, root *corev1.PersistentVolumeClaim) (bool, error) {
	leaf, err := p.readLeafClaimLive(ctx, root)
	if err != nil || leaf == nil {
		return err == nil, err
	}
	if leaf.Spec.VolumeName != "" {
		return false, nil
	}
	pv, err := index.FindObject[corev1.PersistentVolume](ctx, p.Live, index.ClusterScopedKey(provisionedName(leaf.UID)))
	if err != nil || pv != nil {
		return false, err
	}
	volumes, err := index.LeafVolumesOfClaim(ctx, p.Cache, leaf.UID)
	return err == nil && len(volumes) == 0, err
}

func (p Prover) readLeafClaimLive(ctx context.Context, root *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	key := client.ObjectKeyFromObject(root)
	leaf, origin, err := index.FindStamped[corev1.PersistentVolumeClaim](ctx, p.Live, p.HostID, key)
	if err != nil {
		return nil, fmt.Errorf("read the leaf claim of claim %s: %w", key, err)
	}
	if leaf == nil || origin.UID != root.UID {
		return nil, nil //nolint:nilnil // absence is an answer, as with index.Find
	}
	return leaf, nil
}
