package observe

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/volume"
)

// observeImports reads the admins' unrecorded host PVs for a leaf PV of this member, sorted by name, and the
// host class of the one that the decision depends on.
func (o Observer) observeImports(ctx context.Context, s *volume.Observed) error {
	if s.Name == "" {
		return nil
	}
	var err error
	s.Imports, err = index.ImportsOfLeaf(ctx, o.Host, o.ClusterID, s.Name)
	slices.SortFunc(s.Imports, func(a, b corev1.PersistentVolume) int { return cmp.Compare(a.Name, b.Name) })
	asks := s.ImportingHostVolume()
	if err != nil || asks == nil || asks.Spec.StorageClassName == "" {
		return err
	}
	s.ImportClass, err = index.FindObject[storagev1.StorageClass](ctx, o.Host, index.ClusterScopedKey(asks.Spec.StorageClassName))
	return err
}

// ObserveMissingVolume observes a leaf PV that does not exist but that admins' host PVs request.
func (o Observer) ObserveMissingVolume(ctx context.Context, name string) (*volume.Observed, error) {
	s := &volume.Observed{Member: o.Member, Rules: o.Rules, Name: name}
	return s, o.observeImports(ctx, s)
}

// observeRequested observes the leaf PV that is requested by an admin's host PV to which the root is bound.
func (o Observer) observeRequested(ctx context.Context, s *volume.Observed) error {
	s.Member = o.Member
	leaf, err := index.FindObject[corev1.PersistentVolume](ctx, o.Cache, index.ClusterScopedKey(s.Name))
	if err != nil {
		return err
	}
	if leaf != nil {
		s.UID = leaf.UID
		setLeaf(s, leaf)
		if err := o.observeHostVolumes(ctx, s); err != nil {
			return err
		}
		s.TakingHost, s.Host, s.TwinHost = s.Host, nil, nil
		if err := o.observeImportHolder(ctx, s); err != nil {
			return err
		}
	}
	return o.complete(ctx, s)
}

// observeImportHolder finds this host's leaf claim that the leaf PV is bound to.
func (o Observer) observeImportHolder(ctx context.Context, s *volume.Observed) error {
	holder, origin, err := o.findHoldingLeafClaim(ctx, s)
	if err != nil {
		return err
	}
	if holder != nil && !isSame(holder, s.LeafClaim) {
		s.Holder, s.HolderOrigin = holder, origin
	}
	return nil
}
