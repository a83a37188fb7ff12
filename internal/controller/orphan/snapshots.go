package orphan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
)

// takeSnapshotInventory finds the member's snapshots that no host content represents, if both clusters
// serve snapshots.
func (s *inventoryRunner) takeSnapshotInventory(ctx context.Context) error {
	if s.HostSnapshots == nil || s.HostSnapshots.ServedCache() == nil || s.LeafSnapshotCache() == nil {
		return nil
	}
	found, err := s.findOrphanSnapshots(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		ctrl.LoggerFrom(ctx).Info("could not take the inventory of the member's snapshots", "cluster", s.Registration, "cause", err.Error())
		account.DeleteOrphanedSnapshotMetrics(s.Registration)
		s.Orphans.RecordSnapshotInventoryFailure(s.Registration, err.Error(), s.clock.Now())
		return err
	}
	account.SetOrphanedSnapshotMetrics(s.Registration, len(found))
	s.Orphans.RecordSnapshotInventory(s.Registration, found)
	return nil
}

// leafSnapshot is a leaf content of this host, according to its own stamp or its VolumeSnapshot's.
type leafSnapshot struct {
	name   string
	uid    types.UID
	origin mirror.Origin
	// leafUID is the UID of its VolumeSnapshot.
	leafUID types.UID
}

// findOrphanSnapshots reads both sides live, the member first, as sweep does.
func (s *inventoryRunner) findOrphanSnapshots(ctx context.Context) ([]account.Orphan, error) {
	leaves, err := s.listLeafSnapshots(ctx)
	if err != nil || len(leaves) == 0 {
		return nil, err
	}
	hosts := map[types.UID]snapshotv1.VolumeSnapshotContent{}
	var list snapshotv1.VolumeSnapshotContentList
	err = index.ListPages(ctx, s.HostLive, &list, func() {
		for i := range list.Items {
			hosts[list.Items[i].Spec.VolumeSnapshotRef.UID] = list.Items[i]
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list the host's VolumeSnapshotContents: %w", err)
	}
	roots := map[types.NamespacedName]types.UID{}
	var snapshots snapshotv1.VolumeSnapshotList
	err = index.ListPages(ctx, s.HostLive, &snapshots, func() {
		for i := range snapshots.Items {
			vs := &snapshots.Items[i]
			roots[types.NamespacedName{Namespace: vs.Namespace, Name: vs.Name}] = vs.UID
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list the host's VolumeSnapshots: %w", err)
	}
	var found []account.Orphan
	for _, leaf := range leaves {
		var host *snapshotv1.VolumeSnapshotContent
		if h, has := hosts[leaf.origin.UID]; has {
			host = &h
		}
		if o := judgeSnapshot(leaf, host, roots, s.ClusterID); o != nil {
			found = append(found, *o)
		}
	}
	slices.SortFunc(found, func(a, b account.Orphan) int { return strings.Compare(a.Volume, b.Volume) })
	return s.existingOrphanSnapshots(ctx, found)
}

// listLeafSnapshots returns the member's VolumeSnapshotContents that belong to this host, except
// those that are being deleted.
func (s *inventoryRunner) listLeafSnapshots(ctx context.Context) ([]leafSnapshot, error) {
	origins := map[types.UID]mirror.Origin{}
	var snapshots snapshotv1.VolumeSnapshotList
	if err := index.ListPages(ctx, s.Live, &snapshots, func() {
		for i := range snapshots.Items {
			if origin, ours := mirror.LeafOriginFromHost(s.HostID, &snapshots.Items[i]); ours {
				origins[snapshots.Items[i].UID] = origin
			}
		}
	}); err != nil {
		return nil, fmt.Errorf("list the member's VolumeSnapshots: %w", err)
	}
	var found []leafSnapshot
	var list snapshotv1.VolumeSnapshotContentList
	if err := index.ListPages(ctx, s.Live, &list, func() {
		for i := range list.Items {
			content := &list.Items[i]
			leaf := content.Spec.VolumeSnapshotRef.UID
			origin, ours := mirror.LeafOriginFromHost(s.HostID, content)
			if !ours {
				origin, ours = origins[leaf]
			}
			if ours && content.DeletionTimestamp == nil {
				found = append(found, leafSnapshot{content.Name, content.UID, origin, leaf})
			}
		}
	}); err != nil {
		return nil, fmt.Errorf("list the member's VolumeSnapshotContents: %w", err)
	}
	return found, nil
}

// judgeSnapshot returns why a snapshot is an orphan. It returns nil if a host content represents
// the snapshot, or soon will.
func judgeSnapshot(leaf leafSnapshot, host *snapshotv1.VolumeSnapshotContent, roots map[types.NamespacedName]types.UID, clusterID string) *account.Orphan {
	root := leaf.origin.Root
	orphan := func(reason, format string, args ...any) *account.Orphan {
		return &account.Orphan{Volume: leaf.name, UID: leaf.uid, Root: root, Reason: reason, Message: fmt.Sprintf(format, args...)}
	}
	uid, there := roots[root]
	switch {
	case host != nil:
		record := mirrorsnapshot.ContentRecordOf(host)
		switch placed := mirrorsnapshot.ContentPlacedIn(host); {
		case placed != "" && placed != clusterID:
			return orphan(account.SurplusVolume, "snapshot %q is placed in another member (cluster ID %s)", root, placed)
		case record.Content != "" && record.Content != leaf.uid, record.Content == "" && record.Snapshot != "" && record.Snapshot != leaf.leafUID:
			return orphan(account.SurplusVolume, "snapshot %q has another content in the member", root)
		}
		return nil
	case there && uid == leaf.origin.UID:
		return nil // the host's snapshot-controller is about to create the content
	case there:
		return orphan(account.RootReplaced, "VolumeSnapshot %q, for which the snapshot was taken, has been replaced by another one with that name, and no VolumeSnapshotContent in the host represents the snapshot", root)
	}
	return orphan(account.RootGone, "the host has neither VolumeSnapshot %q, for which the snapshot was taken, nor a VolumeSnapshotContent that represents the snapshot", root)
}

// existingOrphanSnapshots returns the orphans that still exist.
func (s *inventoryRunner) existingOrphanSnapshots(ctx context.Context, found []account.Orphan) ([]account.Orphan, error) {
	if len(found) == 0 {
		return nil, nil
	}
	now, err := s.listLeafSnapshots(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(o account.Orphan) bool {
		return !slices.ContainsFunc(now, func(l leafSnapshot) bool { return l.uid == o.UID })
	}), nil
}
