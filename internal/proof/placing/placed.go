package placing

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/proof"
)

// PlacedHere proves by a live read that a root is placed in this member. After a restart, a cache
// filled by a lagging API server may contain an old placement, and only placed-in decides which
// member may push (I3).
func PlacedHere(ctx context.Context, p proof.Prover, root *corev1.PersistentVolumeClaim) (bool, error) {
	now, err := index.Find[corev1.PersistentVolumeClaim](ctx, p.HostLive, client.ObjectKeyFromObject(root))
	return now != nil && now.UID == root.UID && now.Annotations[v1alpha1.AnnotationPlacedIn] == p.ClusterID, err
}

// Promised proves by a live read that a promise is assigned to this member and has no disk or, if
// disk is set, that this leaf PV is still the promise's disk and is not being released. Xylem may
// have destroyed a disk that is released when unused, while a lagging cache still contains it.
func Promised(ctx context.Context, p proof.Prover, promise *corev1.PersistentVolume, disk string) (bool, error) {
	now, err := index.Find[corev1.PersistentVolume](ctx, p.HostLive, index.Named(promise.Name))
	if err != nil || now == nil || now.UID != promise.UID {
		return false, err
	}
	if disk == "" {
		return hostpv.IsPromiseIn(now, p.ClusterID), nil
	}
	cluster, leaf, _, fulfilled := hostpv.LeafOf(now)
	return fulfilled && cluster == p.ClusterID && leaf == disk && !hostpv.Releasing(now), nil
}
