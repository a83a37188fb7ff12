package proof

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/timeline"
)

// ProvePlacedHere proves by a live read that a root is placed in this member. After a restart, a cache
// filled by a lagging API server may contain an old placement, and only placed-in decides which
// member may push (I3).
func ProvePlacedHere(ctx context.Context, p Prover, root *corev1.PersistentVolumeClaim) (bool, error) {
	now, err := readRootPlacedHere(ctx, p, root)
	return now != nil, err
}

// readRootPlacedHere reads a root live. It returns nil if the root is gone, or is not placed in this member.
func readRootPlacedHere(ctx context.Context, p Prover, root *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	now, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, p.HostLive, client.ObjectKeyFromObject(root))
	if err != nil || now == nil || now.UID != root.UID || now.Annotations[v1alpha1.AnnotationPlacedIn] != p.ClusterID {
		return nil, err
	}
	return now, nil
}

// ProveImportedHere proves by a live read that a root is placed in this member, and that an importer or a populator
// requested this: neither a scheduler nor Xylem wrote the selected node. A scheduler's choice is for one Pod,
// and the Pod's node in the member, which determines where the volume must be, is not known without it.
func ProveImportedHere(ctx context.Context, p Prover, root *corev1.PersistentVolumeClaim) (bool, error) {
	now, err := readRootPlacedHere(ctx, p, root)
	return now != nil && slices.ContainsFunc(now.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return timeline.WroteAnnotation(entry, volumehelpers.AnnSelectedNode) &&
			!strings.Contains(entry.Manager, "scheduler") && !strings.HasPrefix(entry.Manager, mirror.FieldManagerPrefix)
	}), err
}

// ProvePromisedHere proves by a live read that a promise is assigned to this member and has no disk or, if
// disk is set, that this leaf PV is still the promise's disk and is not being released. Xylem may
// have destroyed a disk that is released when unused, while a lagging cache still contains it.
func ProvePromisedHere(ctx context.Context, p Prover, promise *corev1.PersistentVolume, disk string) (bool, error) {
	now, err := index.FindObject[corev1.PersistentVolume](ctx, p.HostLive, index.ClusterScopedKey(promise.Name))
	if err != nil || now == nil || now.UID != promise.UID {
		return false, err
	}
	if disk == "" {
		return hostpv.IsUnfulfilledPromiseIn(now, p.ClusterID), nil
	}
	cluster, leaf, _, fulfilled := hostpv.LeafOfHostVolume(now)
	return fulfilled && cluster == p.ClusterID && leaf == disk && !hostpv.IsReleasingDisk(now), nil
}
