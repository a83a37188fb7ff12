package index

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/snapshot"
	"github.com/xylem-io/xylem/internal/placement"
)

// unfilledSourceKey returns the data source of a claim whose volume may still be created from it.
func unfilledSourceKey(claim *corev1.PersistentVolumeClaim) string {
	source, has := mirror.DataSourceOf(claim)
	if !has || claim.Spec.VolumeName != "" && !hostpv.IsPromiseName(claim.Spec.VolumeName) {
		return ""
	}
	return source.IndexKey()
}

// UnfilledClaimsFrom returns a namespace's claims whose volume may still be created from the source with
// the given datasource.Key. They are not bound yet, or are bound to a promise.
func UnfilledClaimsFrom(ctx context.Context, r client.Reader, namespace, source string) ([]corev1.PersistentVolumeClaim, error) {
	return listClaims(ctx, r, indexSelector{unfilledClaimsBySource, source, namespace})
}

// ServesSnapshots reports whether a cluster serves snapshots. It returns an error while this is not known.
type ServesSnapshots func() (bool, error)

// ReadDataSource reads the data source of a claim in the host. It returns nil if the claim has none. r may
// bypass the cache. snapshots reports whether the host serves snapshots.
func ReadDataSource(ctx context.Context, cache, r client.Reader, snapshots ServesSnapshots, claim *corev1.PersistentVolumeClaim) (*placement.CopySource, error) {
	of, has := mirror.DataSourceOf(claim)
	if !has {
		return nil, nil //nolint:nilnil // absence is an answer, as with FindObject
	}
	s, key := &placement.CopySource{Of: of}, types.NamespacedName{Namespace: claim.Namespace, Name: of.Name}
	var err error
	switch {
	case of.Namespace != "":
		return s, nil
	case of.IsClaim():
		if s.Claim, err = FindObject[corev1.PersistentVolumeClaim](ctx, r, key); err != nil {
			return s, err
		}
		if record, recorded := mirror.DataSourceRecordOf(claim); recorded && (s.Claim == nil || s.Claim.UID != record.UID) {
			s.Kept, err = findKeptVolume(ctx, cache, r, key, record.UID)
			return s, err
		}
		if s.Claim == nil {
			return s, nil
		}
		s.Volume, err = FindObject[corev1.PersistentVolume](ctx, r, ClusterScopedKey(s.Claim.Spec.VolumeName))
	case of.IsSnapshot():
		var served bool
		if served, err = snapshots(); err != nil || !served {
			s.Unserved = true
			return s, err
		}
		if s.Snapshot, err = FindObject[snapshotv1.VolumeSnapshot](ctx, r, key); err != nil || s.Snapshot == nil {
			return s, err
		}
		s.Content, err = FindObject[snapshotv1.VolumeSnapshotContent](ctx, r, ClusterScopedKey(contentNameOf(s.Snapshot)))
	}
	return s, err
}

// findKeptVolume returns the host PV of a claim that is gone, or nil.
func findKeptVolume(ctx context.Context, cache, r client.Reader, claim types.NamespacedName, uid types.UID) (*corev1.PersistentVolume, error) {
	volumes, err := HostVolumesOfClaim(ctx, cache, claim)
	if err != nil {
		return nil, err
	}
	for i := range volumes {
		pv, err := FindObject[corev1.PersistentVolume](ctx, r, ClusterScopedKey(volumes[i].Name))
		if err != nil || pv != nil && hostpv.IsReleasedOrFailed(pv) && pv.Spec.ClaimRef.UID == uid {
			return pv, err
		}
	}
	return nil, nil //nolint:nilnil // absence is an answer, as with FindObject
}

// contentNameOf returns the name of a VolumeSnapshot's content. For an imported snapshot, it is
// the name that an admin chose.
func contentNameOf(of *snapshotv1.VolumeSnapshot) string {
	if of.Status != nil && of.Status.BoundVolumeSnapshotContentName != nil {
		return *of.Status.BoundVolumeSnapshotContentName
	}
	return snapshot.ContentName(of.UID)
}

// UnfilledClaimsFromSnapshot returns the claims whose volume may still be created from the given VolumeSnapshot.
func UnfilledClaimsFromSnapshot(ctx context.Context, r client.Reader, snapshot types.NamespacedName) ([]corev1.PersistentVolumeClaim, error) {
	return UnfilledClaimsFrom(ctx, r, snapshot.Namespace, mirror.SnapshotDataSourceKey(snapshot.Name))
}

// SnapshotKeyOf returns the name of a VolumeSnapshot, or of a content's VolumeSnapshot.
func SnapshotKeyOf(obj client.Object) types.NamespacedName {
	if content, ok := obj.(*snapshotv1.VolumeSnapshotContent); ok {
		return snapshot.RootSnapshotKey(content)
	}
	return client.ObjectKeyFromObject(obj)
}
