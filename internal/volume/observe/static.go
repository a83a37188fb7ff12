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
	s.Imports, err = index.ImportsOf(ctx, o.Host, o.ClusterID, s.Name)
	slices.SortFunc(s.Imports, func(a, b corev1.PersistentVolume) int { return cmp.Compare(a.Name, b.Name) })
	asks := s.Import()
	if err != nil || asks == nil || asks.Spec.StorageClassName == "" {
		return err
	}
	s.ImportClass, err = index.Find[storagev1.StorageClass](ctx, o.Host, index.Named(asks.Spec.StorageClassName))
	return err
}

// OfMissing observes a leaf PV that does not exist but that admins' host PVs request.
func (o Observer) OfMissing(ctx context.Context, name string) (*volume.Observed, error) {
	s := &volume.Observed{Member: o.Member, Rules: o.Rules, Name: name}
	return s, o.observeImports(ctx, s)
}

// observeRequested observes the leaf PV that is requested by an admin's host PV to which the root is bound.
func (o Observer) observeRequested(ctx context.Context, s *volume.Observed) error {
	s.Member = o.Member
	leaf, err := index.Find[corev1.PersistentVolume](ctx, o.Cache, index.Named(s.Name))
	if err != nil {
		return err
	}
	if leaf != nil {
		s.UID = leaf.UID
		setLeaf(s, leaf)
		if err := o.observeHosts(ctx, s); err != nil {
			return err
		}
		s.Taken, s.Host, s.Twin = s.Host, nil, nil
		if err := o.observeHolder(ctx, s); err != nil {
			return err
		}
	}
	return o.complete(ctx, s)
}

// observeHolder finds this host's leaf claim that the leaf PV is bound to.
func (o Observer) observeHolder(ctx context.Context, s *volume.Observed) error {
	holder, origin, err := o.holder(ctx, s)
	if err != nil {
		return err
	}
	if holder != nil && !isSame(holder, s.Claim) {
		s.Holder, s.HolderOrigin = holder, origin
	}
	return nil
}
