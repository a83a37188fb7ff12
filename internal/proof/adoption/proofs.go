package adoption

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/proof"
)

// SoleImport proves by a live list of the host's PVs that only the admin's PV represents or
// requests the leaf PV. Other PVs could do so by their handle, and promises by their record.
func SoleImport(ctx context.Context, p proof.Prover, host *corev1.PersistentVolume, leaf string) (bool, error) {
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
		return false, fmt.Errorf("prove that no other host PV represents leaf volume %s: %w", leaf, err)
	}
	return sole, nil
}

// ClaimGone proves by a live read that the member has no claim with the given name and UID, so the
// volume's former owner has released it. An empty name matches no claim.
func ClaimGone(ctx context.Context, p proof.Prover, key types.NamespacedName, uid types.UID) (bool, error) {
	if key.Name == "" {
		return true, nil
	}
	claim, err := index.Find[corev1.PersistentVolumeClaim](ctx, p.Live, key)
	if err != nil {
		return false, fmt.Errorf("prove that claim %s in the member is gone: %w", key, err)
	}
	return claim == nil || claim.UID != uid, nil
}
