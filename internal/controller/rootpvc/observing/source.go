package observing

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
	"github.com/xylem-io/xylem/internal/mirror/hostclass"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
	"github.com/xylem-io/xylem/internal/volume"
)

// observeSource reads the data source of a claim without a volume in both clusters, and the class
// of its leaf claim.
func (o Observer) observeSource(ctx context.Context, c *Claim) error {
	s := c.Observed
	if !s.Alone() || c.Root.Spec.VolumeName != "" && s.Promise == nil {
		return nil
	}
	source, err := index.Source(ctx, o.Host, o.Host, o.HostSnapshots, c.Root)
	if source == nil || err != nil {
		return err
	}
	from := &volume.From{Of: source.Of, At: source.Locate(c.Root)}
	s.Placement.From = from
	if hostclass.Own(s.Class) {
		if from.Class, err = index.Find[storagev1.StorageClass](ctx, o.Cache, index.Named(s.Answer().Class)); err != nil {
			return err
		}
	}
	if !source.Of.Placed() || source.Of.Namespace != "" {
		return nil
	}
	key := types.NamespacedName{Namespace: c.Root.Namespace, Name: source.Of.Name}
	if source.Of.IsSnapshot() {
		err = o.observeSourceSnapshot(ctx, from, key)
	} else {
		err = o.observeSourceClaim(ctx, from, key)
	}
	if err != nil {
		return err
	}
	return o.ObserveNamesake(ctx, s)
}

func (o Observer) observeSourceClaim(ctx context.Context, from *volume.From, key types.NamespacedName) (err error) {
	if from.Claim, from.Origin, err = index.Leaf[corev1.PersistentVolumeClaim](ctx, o.Cache, o.HostID, key); err != nil {
		return err
	}
	from.Volume, err = index.Find[corev1.PersistentVolume](ctx, o.Cache, index.Named(from.At.LeafVolume))
	return err
}

func (o Observer) observeSourceSnapshot(ctx context.Context, from *volume.From, key types.NamespacedName) (err error) {
	if o.LeafSnapshots == nil {
		from.Unread = cmp.Or(o.SnapshotProblem, &mirror.Refusal{Reason: v1alpha1.ReasonSourceNotReady, Message: "Xylem has not read the member's snapshots yet"})
		return nil
	}
	if from.Snapshot, from.Origin, err = index.Leaf[snapshotv1.VolumeSnapshot](ctx, o.LeafSnapshots, o.HostID, key); err != nil || from.Snapshot == nil {
		return err
	}
	from.Content, err = index.Find[snapshotv1.VolumeSnapshotContent](ctx, o.LeafSnapshots, index.Named(mirrorsnapshot.ContentName(from.Snapshot.UID)))
	return err
}
