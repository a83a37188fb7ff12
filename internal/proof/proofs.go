package proof

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// ProveSoleImport proves by a live list of the host's PVs that only the admin's PV represents or
// requests the leaf PV. Other PVs could do so by their handle, and promises by their record. Concurrent
// proofs share the list: an admin may import thousands of volumes at once.
func ProveSoleImport(ctx context.Context, p Prover, host *corev1.PersistentVolume, leaf string) (bool, error) {
	recorded, err := p.RecordedLeaves.Do(ctx, struct{}{}, func(ctx context.Context) (map[string][]types.UID, error) {
		found := map[string][]types.UID{}
		var list corev1.PersistentVolumeList
		return found, index.ListPages(ctx, p.HostLive, &list, func() {
			for i := range list.Items {
				for _, name := range hostpv.LeavesRecordedBy(&list.Items[i], p.ClusterID) {
					found[name] = append(found[name], list.Items[i].UID)
				}
			}
		})
	})
	if err != nil {
		return false, fmt.Errorf("prove that no other host PV represents leaf volume %s: %w", leaf, err)
	}
	return !slices.ContainsFunc(recorded[leaf], func(uid types.UID) bool { return uid != host.UID }), nil
}

// ProveMemberClaimGone proves by a live read that the member has no claim with the given name and UID, so the
// volume's former owner has released it. An empty name matches no claim.
func ProveMemberClaimGone(ctx context.Context, p Prover, key types.NamespacedName, uid types.UID) (bool, error) {
	if key.Name == "" {
		return true, nil
	}
	claim, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, p.Live, key)
	if err != nil {
		return false, fmt.Errorf("prove that claim %s in the member is gone: %w", key, err)
	}
	return claim == nil || claim.UID != uid, nil
}

// ProveLeafReleasedFor proves by live reads that a claim still exists and requests a leaf PV, so the earlier claim
// with its name is gone, and that the leaf PV is Released, so nothing uses it.
func ProveLeafReleasedFor(ctx context.Context, p Prover, claim *corev1.PersistentVolumeClaim, leaf *corev1.PersistentVolume) (bool, error) {
	asks, err := readRequestingClaim(ctx, p, claim, leaf)
	if err != nil || asks == nil {
		return false, err
	}
	now, err := index.FindObject[corev1.PersistentVolume](ctx, p.Live, index.ClusterScopedKey(leaf.Name))
	if err != nil {
		return false, fmt.Errorf("prove that volume %s is released: %w", leaf.Name, err)
	}
	return now != nil && now.UID == leaf.UID && now.Status.Phase == corev1.VolumeReleased, nil
}

// ProveLeafClaimFor proves by live reads that a claim still exists and requests a leaf PV, so the earlier claim
// with its name is gone, that the host has no PV that could represent the leaf PV, and that the leaf PV
// still belongs to the leaf claim.
func ProveLeafClaimFor(ctx context.Context, p Prover, claim, leafClaim *corev1.PersistentVolumeClaim, leaf *corev1.PersistentVolume) (bool, error) {
	root, err := readRequestingClaim(ctx, p, claim, leaf)
	if err != nil || root == nil {
		return false, err
	}
	for _, collides := range []bool{false, true} {
		pv, err := index.FindObject[corev1.PersistentVolume](ctx, p.HostLive, index.ClusterScopedKey(hostpv.HostVolumeName(leaf.Name, p.ClusterID, collides)))
		if err != nil {
			return false, fmt.Errorf("prove that the host has no PV for volume %s: %w", leaf.Name, err)
		}
		if pv == nil {
			continue
		}
		cluster, name, _, ours := hostpv.LeafOfHostVolume(pv)
		if pv.Name == root.Spec.VolumeName || ours && cluster == p.ClusterID && name == leaf.Name {
			return false, nil // not in the cache yet
		}
	}
	now, err := index.FindObject[corev1.PersistentVolume](ctx, p.Live, index.ClusterScopedKey(leaf.Name))
	if err != nil {
		return false, fmt.Errorf("prove that volume %s is unchanged: %w", leaf.Name, err)
	}
	return now != nil && now.UID == leaf.UID && now.Spec.ClaimRef != nil && now.Spec.ClaimRef.UID == leafClaim.UID &&
		hostpv.RequestsEarlierVolume(root, now, p.Member), nil
}

// readRequestingClaim returns the claim from a live read, or nil if it no longer exists or no longer requests the
// leaf PV.
func readRequestingClaim(ctx context.Context, p Prover, claim *corev1.PersistentVolumeClaim, leaf *corev1.PersistentVolume) (*corev1.PersistentVolumeClaim, error) {
	key := client.ObjectKeyFromObject(claim)
	now, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, p.HostLive, key)
	if err != nil {
		return nil, fmt.Errorf("prove that claim %s requests volume %s: %w", key, leaf.Name, err)
	}
	if now == nil || now.UID != claim.UID || !hostpv.RequestsEarlierVolume(now, leaf, p.Member) {
		return nil, nil //nolint:nilnil // absence is an answer, as with index.Find
	}
	return now, nil
}
