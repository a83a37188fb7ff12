package observe

import (
	"cmp"
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
	"github.com/xylem-io/xylem/internal/volume"
)

// observeSource reads the data source of a claim without a volume in both clusters, and the class
// of its leaf claim.
func (o Observer) observeSource(ctx context.Context, s *volume.Observed, root *corev1.PersistentVolumeClaim) error {
	if !s.ClaimWithoutVolume() || root.Spec.VolumeName != "" && s.Promise == nil {
		return nil
	}
	source, err := index.ReadDataSource(ctx, o.Host, o.Host, o.HostSnapshots, root)
	if source == nil || err != nil {
		return err
	}
	from := &volume.SourceInMember{Of: source.Of, At: source.Locate(root)}
	s.Placement.Source = from
	if hostpv.IsXylemClass(s.Class) {
		if from.Class, err = index.FindObject[storagev1.StorageClass](ctx, o.Cache, index.ClusterScopedKey(s.LeafClaimAnswer().Class)); err != nil {
			return err
		}
	}
	if !source.Of.IsInOneMember() || source.Of.Namespace != "" {
		return nil
	}
	key := types.NamespacedName{Namespace: root.Namespace, Name: source.Of.Name}
	if source.Of.IsSnapshot() {
		err = o.observeSourceSnapshot(ctx, from, key)
	} else {
		err = o.observeSourceClaim(ctx, from, key)
	}
	if err != nil {
		return err
	}
	return o.observeNamesake(ctx, s)
}

func (o Observer) observeSourceClaim(ctx context.Context, from *volume.SourceInMember, key types.NamespacedName) (err error) {
	if from.Claim, from.Origin, err = index.FindStamped[corev1.PersistentVolumeClaim](ctx, o.Cache, o.HostID, key); err != nil {
		return err
	}
	from.Volume, err = index.FindObject[corev1.PersistentVolume](ctx, o.Cache, index.ClusterScopedKey(from.At.LeafVolume))
	return err
}

func (o Observer) observeSourceSnapshot(ctx context.Context, from *volume.SourceInMember, key types.NamespacedName) (err error) {
	if o.LeafSnapshots == nil {
		from.UnreadableCause = cmp.Or(o.SnapshotProblem, &mirror.Refusal{Reason: v1alpha1.ReasonSourceNotReady, Message: "Xylem has not read the member's snapshots yet"})
		return nil
	}
	if from.Snapshot, from.Origin, err = index.FindStamped[snapshotv1.VolumeSnapshot](ctx, o.LeafSnapshots, o.HostID, key); err != nil || from.Snapshot == nil {
		return err
	}
	from.Content, err = index.FindObject[snapshotv1.VolumeSnapshotContent](ctx, o.LeafSnapshots, index.ClusterScopedKey(mirrorsnapshot.ContentName(from.Snapshot.UID)))
	return err
}

// observeNamesake determines whether another object in the member now has the name of the leaf
// claim's source. This matters until the volume is mirrored.
func (o Observer) observeNamesake(ctx context.Context, s *volume.Observed) error {
	if s.Root == nil || s.LeafClaim == nil || s.Root.Spec.VolumeName != "" && !hostpv.IsPromiseName(s.Root.Spec.VolumeName) {
		return nil
	}
	source, _ := mirror.DataSourceOf(s.Root)
	was := mirror.DataSourceUIDOfLeaf(s.LeafClaim)
	if was == "" {
		return nil
	}
	var found bool
	var origin mirror.Origin
	var err error
	key := types.NamespacedName{Namespace: s.LeafClaim.Namespace, Name: source.Name}
	switch {
	case source.IsClaim():
		var leaf *corev1.PersistentVolumeClaim
		leaf, origin, err = index.FindStamped[corev1.PersistentVolumeClaim](ctx, o.Cache, o.HostID, key)
		found = leaf != nil
	case source.IsSnapshot() && o.LeafSnapshots != nil:
		var leaf *snapshotv1.VolumeSnapshot
		leaf, origin, err = index.FindStamped[snapshotv1.VolumeSnapshot](ctx, o.LeafSnapshots, o.HostID, key)
		found = leaf != nil
	}
	s.SourceNameReused = found && origin.UID != was
	return err
}
