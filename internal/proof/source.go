package proof

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
	"github.com/xylem-io/xylem/internal/placement"
)

// ProveSourceHere proves by live reads of both clusters that a root's data source is the recorded one
// and is in this member. The member's object with the source's name must be the source's leaf: a
// claim bound to the recorded volume, or a ready snapshot. ProveSourceHere returns the source's UID in
// the host. A member finds a source by name, so another object with that name would put its data
// into the claim.
func ProveSourceHere(ctx context.Context, p Prover, root *corev1.PersistentVolumeClaim) (types.UID, bool, error) {
	source, err := readDataSourceLive(ctx, p, root)
	if err != nil {
		return "", false, fmt.Errorf("prove that the data source of claim %s is ready: %w", client.ObjectKeyFromObject(root), err)
	}
	if source == nil || !source.Of.IsInOneMember() {
		return "", false, nil
	}
	at := source.Locate(root)
	record, recorded := mirror.DataSourceRecordOf(root)
	if at.Refusal != nil || at.ClusterID != p.ClusterID || !recorded || record != at.DataSourceRecord {
		return "", false, nil
	}
	key := types.NamespacedName{Namespace: root.Namespace, Name: source.Of.Name}
	proven := false
	if source.Of.IsSnapshot() {
		proven, err = proveSourceSnapshotHere(ctx, p, key, at)
	} else {
		proven, err = proveSourceClaimHere(ctx, p, key, at)
	}
	return at.UID, proven, err
}

// readDataSourceLive reads live the host's objects for a root's data source. It returns nil if the root has
// no data source.
func readDataSourceLive(ctx context.Context, p Prover, root *corev1.PersistentVolumeClaim) (*placement.CopySource, error) {
	of, has := mirror.DataSourceOf(root)
	if !has || !of.IsSnapshot() || of.Namespace != "" {
		return index.ReadDataSource(ctx, p.Host, p.HostLive, nil, root) // not a snapshot
	}
	s := &placement.CopySource{Of: of}
	var err error
	if s.Snapshot, err = index.ReadLiveSnapshot(ctx, p.HostLive, types.NamespacedName{Namespace: root.Namespace, Name: of.Name}); err != nil || s.Snapshot == nil {
		return s, err
	}
	s.Content, err = index.ReadLiveContent(ctx, p.HostLive, mirrorsnapshot.ContentName(s.Snapshot.UID))
	return s, err
}

// proveSourceClaimHere proves that the leaf claim with the given name is the leaf of the claim to clone, and
// is bound to its volume.
func proveSourceClaimHere(ctx context.Context, p Prover, key types.NamespacedName, at placement.CopyLocation) (bool, error) {
	leaf, origin, err := index.FindStamped[corev1.PersistentVolumeClaim](ctx, p.Live, p.HostID, key)
	if err != nil {
		return false, fmt.Errorf("read the leaf claim of claim %s: %w", key, err)
	}
	if leaf == nil || origin.UID != at.UID || origin.Root != key || leaf.DeletionTimestamp != nil || leaf.Status.Phase != corev1.ClaimBound || leaf.Spec.VolumeName != at.LeafVolume {
		return false, nil
	}
	volume, err := index.FindObject[corev1.PersistentVolume](ctx, p.Live, index.ClusterScopedKey(at.LeafVolume))
	return volume != nil && volume.UID == at.LeafUID, err
}

// proveSourceSnapshotHere proves that the leaf VolumeSnapshot with the given name is the leaf of the snapshot
// to restore, and that its content is the recorded one and is ready.
func proveSourceSnapshotHere(ctx context.Context, p Prover, key types.NamespacedName, at placement.CopyLocation) (bool, error) {
	leaf, err := index.ReadLiveSnapshot(ctx, p.Live, key)
	if err != nil || leaf == nil || leaf.DeletionTimestamp != nil {
		return false, err
	}
	content, err := index.ReadLiveContent(ctx, p.Live, mirrorsnapshot.ContentName(leaf.UID))
	return err == nil && at.Unready(mirror.Origin{HostID: p.HostID, Root: key, UID: at.UID}, leaf, content) == "", err
}
