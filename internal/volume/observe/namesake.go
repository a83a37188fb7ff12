package observe

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/datasource"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/volume"
)

// ObserveNamesake determines whether another object in the member now has the name of the leaf
// claim's source. This matters until the volume is mirrored.
func (o Observer) ObserveNamesake(ctx context.Context, s *volume.Observed) error {
	if s.Root == nil || s.Claim == nil || s.Root.Spec.VolumeName != "" && !hostpv.NamesPromise(s.Root.Spec.VolumeName) {
		return nil
	}
	source, _ := datasource.Of(s.Root)
	was := datasource.OfLeaf(s.Claim)
	if was == "" {
		return nil
	}
	var found bool
	var origin mirror.Origin
	var err error
	key := types.NamespacedName{Namespace: s.Claim.Namespace, Name: source.Name}
	switch {
	case source.IsClaim():
		var leaf *corev1.PersistentVolumeClaim
		leaf, origin, err = index.Leaf[corev1.PersistentVolumeClaim](ctx, o.Cache, o.HostID, key)
		found = leaf != nil
	case source.IsSnapshot() && o.LeafSnapshots != nil:
		var leaf *snapshotv1.VolumeSnapshot
		leaf, origin, err = index.Leaf[snapshotv1.VolumeSnapshot](ctx, o.LeafSnapshots, o.HostID, key)
		found = leaf != nil
	}
	s.Namesake = found && origin.UID != was
	return err
}
