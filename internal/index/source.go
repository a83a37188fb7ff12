package index

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/mirror/datasource"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/snapshot"
	"github.com/xylem-io/xylem/internal/placement"
)

// waitingSource returns the data source of a claim whose volume may still be created from it.
func waitingSource(claim *corev1.PersistentVolumeClaim) string {
	source, has := datasource.Of(claim)
	if !has || claim.Spec.VolumeName != "" && !hostpv.NamesPromise(claim.Spec.VolumeName) {
		return ""
	}
	return source.Key()
}

// ClaimsFrom returns a namespace's claims whose volume may still be created from the source with
// the given datasource.Key. They are not bound yet, or are bound to a promise.
func ClaimsFrom(ctx context.Context, r client.Reader, namespace, source string) ([]corev1.PersistentVolumeClaim, error) {
	return claims(ctx, r, where{claimsBySource, source, namespace})
}

// Served reports whether a cluster serves snapshots. It returns an error while this is not known.
type Served func() (bool, error)

// Source reads the data source of a claim in the host. It returns nil if the claim has none. r may
// bypass the cache. snapshots reports whether the host serves snapshots.
func Source(ctx context.Context, cache, r client.Reader, snapshots Served, claim *corev1.PersistentVolumeClaim) (*placement.CopySource, error) {
	of, has := datasource.Of(claim)
	if !has {
		return nil, nil //nolint:nilnil // absence is an answer, as with Find
	}
	s, key := &placement.CopySource{Of: of}, types.NamespacedName{Namespace: claim.Namespace, Name: of.Name}
	var err error
	switch {
	case of.Namespace != "":
		return s, nil
	case of.IsClaim():
		if s.Claim, err = Find[corev1.PersistentVolumeClaim](ctx, r, key); err != nil {
			return s, err
		}
		if record, recorded := datasource.RecordOf(claim); recorded && (s.Claim == nil || s.Claim.UID != record.UID) {
			s.Kept, err = keptVolume(ctx, cache, r, key, record.UID)
			return s, err
		}
		if s.Claim == nil {
			return s, nil
		}
		s.Volume, err = Find[corev1.PersistentVolume](ctx, r, Named(s.Claim.Spec.VolumeName))
	case of.IsSnapshot():
		var served bool
		if served, err = snapshots(); err != nil || !served {
			s.Unserved = true
			return s, err
		}
		if s.Snapshot, err = Find[snapshotv1.VolumeSnapshot](ctx, r, key); err != nil || s.Snapshot == nil {
			return s, err
		}
		s.Content, err = Find[snapshotv1.VolumeSnapshotContent](ctx, r, Named(contentOf(s.Snapshot)))
	}
	return s, err
}

// keptVolume returns the host PV of a claim that is gone, or nil.
func keptVolume(ctx context.Context, cache, r client.Reader, claim types.NamespacedName, uid types.UID) (*corev1.PersistentVolume, error) {
	volumes, err := VolumesOfClaim(ctx, cache, claim)
	if err != nil {
		return nil, err
	}
	for i := range volumes {
		pv, err := Find[corev1.PersistentVolume](ctx, r, Named(volumes[i].Name))
		if err != nil || pv != nil && hostpv.Ended(pv) && pv.Spec.ClaimRef.UID == uid {
			return pv, err
		}
	}
	return nil, nil //nolint:nilnil // absence is an answer, as with Find
}

// contentOf returns the name of a VolumeSnapshot's content. For an imported snapshot, it is
// the name that an admin chose.
func contentOf(of *snapshotv1.VolumeSnapshot) string {
	if of.Status != nil && of.Status.BoundVolumeSnapshotContentName != nil {
		return *of.Status.BoundVolumeSnapshotContentName
	}
	return snapshot.ContentName(of.UID)
}

// RestoresOf returns the claims whose volume may still be created from the given VolumeSnapshot.
func RestoresOf(ctx context.Context, r client.Reader, snapshot types.NamespacedName) ([]corev1.PersistentVolumeClaim, error) {
	return ClaimsFrom(ctx, r, snapshot.Namespace, datasource.SnapshotKey(snapshot.Name))
}

// SnapshotNamed returns the name of a VolumeSnapshot, or of a content's VolumeSnapshot.
func SnapshotNamed(obj client.Object) types.NamespacedName {
	if content, ok := obj.(*snapshotv1.VolumeSnapshotContent); ok {
		return snapshot.RootOf(content)
	}
	return client.ObjectKeyFromObject(obj)
}
