package observe

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/volume"
)

// Imports returns the admins' unrecorded host PVs for a leaf PV of this member, sorted by name.
func (o Observer) Imports(ctx context.Context, leaf string) ([]corev1.PersistentVolume, error) {
	found, err := index.ImportsOf(ctx, o.Host, o.ClusterID, leaf)
	slices.SortFunc(found, func(a, b corev1.PersistentVolume) int { return cmp.Compare(a.Name, b.Name) })
	return found, err
}

// OfMissing observes a leaf PV that does not exist but that admins' host PVs request.
func (o Observer) OfMissing(ctx context.Context, name string) (*volume.Observed, error) {
	s := &volume.Observed{Member: o.Member, Rules: o.Rules, Name: name}
	var err error
	s.Imports, err = o.Imports(ctx, name)
	return s, err
}

// ofImport observes the leaf PV that is requested by an admin's host PV to which a claim is bound.
func (o Observer) ofImport(ctx context.Context, name string, root, claim *corev1.PersistentVolumeClaim, origin mirror.Origin) (*volume.Observed, error) {
	leaf, err := index.Find[corev1.PersistentVolume](ctx, o.Cache, index.Named(name))
	if err != nil {
		return nil, err
	}
	s := &volume.Observed{Member: o.Member, Rules: o.Rules, Name: name, Root: root, Claim: claim, Origin: origin}
	if s.Imports, err = o.Imports(ctx, name); err != nil {
		return nil, err
	}
	if leaf != nil {
		s.UID = leaf.UID
		has(s, leaf)
		if err := o.observeHosts(ctx, s); err != nil {
			return nil, err
		}
		s.Taken, s.Host, s.Twin = s.Host, nil, nil
		if err := o.observeHolder(ctx, s); err != nil {
			return nil, err
		}
	}
	return s, o.observeImportClass(ctx, s)
}

// observeHolder finds this host's leaf claim that the leaf PV is bound to, and the root in the leaf
// PV's stamp.
func (o Observer) observeHolder(ctx context.Context, s *volume.Observed) error {
	holder, origin, err := o.holder(ctx, s)
	if err != nil {
		return err
	}
	if holder != nil && !same(holder, s.Claim) {
		s.Holder, s.HolderOrigin = holder, origin
	}
	if s.Stamped && s.Stamp.Root.Namespace != "" {
		s.HolderRoot, err = o.root(ctx, s.Stamp)
	}
	return err
}

// observeImportClass reads the host class of the host PV that requests the volume.
func (o Observer) observeImportClass(ctx context.Context, s *volume.Observed) error {
	asks := s.Import()
	if asks == nil || asks.Spec.StorageClassName == "" {
		return nil
	}
	var err error
	s.ImportClass, err = index.Find[storagev1.StorageClass](ctx, o.Host, index.Named(asks.Spec.StorageClassName))
	return err
}
