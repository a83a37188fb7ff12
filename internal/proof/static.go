package proof

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// SoleImport proves with a live list of the host's PVs that no PV other than the admin's
// represents or requests the leaf PV, by its handle or by the record of a promise.
func (p Prover) SoleImport(ctx context.Context, host *corev1.PersistentVolume, leaf string) (bool, error) {
	sole := true
	var list corev1.PersistentVolumeList
	err := index.Pages(ctx, p.HostLive, &list, func() {
		for i := range list.Items {
			if pv := &list.Items[i]; pv.UID != host.UID && hostpv.RecordsLeaf(pv, p.ClusterID, leaf) {
				sole = false
			}
		}
	})
	if err != nil {
		return false, fmt.Errorf("prove that no other volume of the host represents %s: %w", leaf, err)
	}
	return sole, nil
}

// ClaimGone proves with a live read that the member has no claim with a name and UID, so its
// former owner has released the volume. An empty name matches no claim.
func (p Prover) ClaimGone(ctx context.Context, key types.NamespacedName, uid types.UID) (bool, error) {
	if key.Name == "" {
		return true, nil
	}
	claim, err := index.Find[corev1.PersistentVolumeClaim](ctx, p.Live, key)
	if err != nil {
		return false, fmt.Errorf("prove that claim %s of the member is gone: %w", key, err)
	}
	return claim == nil || claim.UID != uid, nil
}
