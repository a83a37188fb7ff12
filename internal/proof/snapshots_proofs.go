package proof

import (
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/internal/index"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
)

// SnapshotProver reads the snapshots in the host and in one member.
type SnapshotProver struct{ Prover }

// SnapshotEnded is the proof that the host's VolumeSnapshot with a given UID was deleted, or is
// being deleted, which cannot be undone.
type SnapshotEnded struct {
	witness *Witness
	// gone means that the VolumeSnapshot no longer exists, so no claim can be restored from it.
	gone bool
}

// ProveSnapshotEnded proves by a live read that the VolumeSnapshot is gone or being deleted.
func (p SnapshotProver) ProveSnapshotEnded(ctx context.Context, root types.NamespacedName, uid types.UID) (SnapshotEnded, bool, error) {
	began := p.Clock.Now()
	now, err := index.ReadLiveSnapshot(ctx, p.HostLive, root)
	if err != nil {
		return SnapshotEnded{}, false, fmt.Errorf("prove that snapshot %s has ended: %w", root, err)
	}
	gone := now == nil || now.UID != uid
	if uid == "" || !gone && now.DeletionTimestamp == nil {
		return SnapshotEnded{}, false, nil
	}
	return SnapshotEnded{NewWitness(p.Clock, began, uid, ""), gone}, true, nil
}

// ContentEnded is the proof that a host content must be destroyed with its snapshot.
type ContentEnded struct{ hostContent }

// ContentUnchanged is the proof that a host content has not changed.
type ContentUnchanged struct{ hostContent }

// proveHostContent is a host content from a live read.
type hostContent struct {
	witness *Witness
	content *snapshotv1.VolumeSnapshotContent
}

// ProveContentEnded proves by a live read that a host content is being deleted with policy Delete, that
// the snapshot-controller announced the deletion of its VolumeSnapshot, and that the content is not
// abandoned.
func (p SnapshotProver) ProveContentEnded(ctx context.Context, seen *snapshotv1.VolumeSnapshotContent) (ContentEnded, bool, error) {
	c, ok, err := p.proveHostContent(ctx, seen, func(now *snapshotv1.VolumeSnapshotContent) bool {
		return now.DeletionTimestamp != nil && now.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete &&
			mirrorsnapshot.IsSnapshotBeingDeleted(now) && !mirrorsnapshot.IsAbandonedSnapshot(now) && mirrorsnapshot.ContentPlacedIn(now) == p.ClusterID
	})
	return ContentEnded{c}, ok, err
}

// ProveContentUnchanged proves by a live read that a host content has not changed.
func (p SnapshotProver) ProveContentUnchanged(ctx context.Context, seen *snapshotv1.VolumeSnapshotContent) (ContentUnchanged, bool, error) {
	c, ok, err := p.proveHostContent(ctx, seen, func(now *snapshotv1.VolumeSnapshotContent) bool { return now.ResourceVersion == seen.ResourceVersion })
	return ContentUnchanged{c}, ok, err
}

func (p SnapshotProver) proveHostContent(ctx context.Context, seen *snapshotv1.VolumeSnapshotContent, still func(*snapshotv1.VolumeSnapshotContent) bool) (hostContent, bool, error) {
	began := p.Clock.Now()
	now, err := index.ReadLiveContent(ctx, p.HostLive, seen.Name)
	if err != nil {
		return hostContent{}, false, fmt.Errorf("prove that content %s is unchanged: %w", seen.Name, err)
	}
	if now == nil || now.UID != seen.UID || now.Spec.VolumeSnapshotRef.UID != seen.Spec.VolumeSnapshotRef.UID || !still(now) {
		return hostContent{}, false, nil
	}
	return hostContent{NewWitness(p.Clock, began, now.UID, now.ResourceVersion), now}, true, nil
}

// ProveSnapshotPlacedHere proves by a live read that a host content is placed in this member, does not
// record a leaf, and is not being deleted.
func (p SnapshotProver) ProveSnapshotPlacedHere(ctx context.Context, seen *snapshotv1.VolumeSnapshotContent) (bool, error) {
	_, ok, err := p.proveHostContent(ctx, seen, func(now *snapshotv1.VolumeSnapshotContent) bool {
		record := mirrorsnapshot.ContentRecordOf(now)
		return mirrorsnapshot.ContentPlacedIn(now) == p.ClusterID && record.Snapshot == "" && record.Content == "" && now.DeletionTimestamp == nil
	})
	return ok, err
}

// NotRepresented is the proof that the host has no content for a VolumeSnapshot.
type NotRepresented struct{ witness *Witness }

// ProveNotRepresented proves by a live read that the host has no content with the name that the
// snapshot-controller uses for the VolumeSnapshot.
func (p SnapshotProver) ProveNotRepresented(ctx context.Context, root types.UID) (NotRepresented, bool, error) {
	began := p.Clock.Now()
	now, err := index.ReadLiveContent(ctx, p.HostLive, mirrorsnapshot.ContentName(root))
	if err != nil || now != nil {
		return NotRepresented{}, false, err
	}
	return NotRepresented{NewWitness(p.Clock, began, root, "")}, true, nil
}

// LeafContent is the proof of the state of a leaf content in the member.
type LeafContent struct {
	witness *Witness
	name    string
	content *snapshotv1.VolumeSnapshotContent // nil if it does not exist
}

// ProveLeafContent proves by a live read that wanted accepts the content of the leaf VolumeSnapshot with
// the given UID. wanted receives nil if the content does not exist.
func (p SnapshotProver) ProveLeafContent(ctx context.Context, leaf types.UID, wanted func(*snapshotv1.VolumeSnapshotContent) bool) (LeafContent, bool, error) {
	began, name := p.Clock.Now(), mirrorsnapshot.ContentName(leaf)
	content, err := index.ReadLiveContent(ctx, p.Live, name)
	if err != nil || !wanted(content) {
		return LeafContent{}, false, err
	}
	if content == nil {
		return LeafContent{witness: NewWitness(p.Clock, began, "", ""), name: name}, true, nil
	}
	return LeafContent{NewWitness(p.Clock, began, content.UID, content.ResourceVersion), name, content}, true, nil
}

// isContentOf reports whether the proof is for a leaf VolumeSnapshot's content.
func (l LeafContent) isContentOf(leaf *snapshotv1.VolumeSnapshot) bool {
	return l.witness != nil && l.name == mirrorsnapshot.ContentName(leaf.UID)
}

// LeafSnapshotGone is the proof that the member no longer has the VolumeSnapshot of a leaf content.
type LeafSnapshotGone struct{ witness *Witness }

// ProveLeafSnapshotGone proves by a live read that the member no longer has the VolumeSnapshot for which a
// leaf content was created.
func (p SnapshotProver) ProveLeafSnapshotGone(ctx context.Context, content *snapshotv1.VolumeSnapshotContent) (LeafSnapshotGone, bool, error) {
	began, of, leaf := p.Clock.Now(), content.Spec.VolumeSnapshotRef.UID, mirrorsnapshot.RootSnapshotKey(content)
	if of == "" {
		return LeafSnapshotGone{}, false, nil
	}
	now, err := index.ReadLiveSnapshot(ctx, p.Live, leaf)
	if err != nil {
		return LeafSnapshotGone{}, false, fmt.Errorf("prove that leaf snapshot %s is gone: %w", leaf, err)
	}
	if now != nil && now.UID == of {
		return LeafSnapshotGone{}, false, nil
	}
	return LeafSnapshotGone{NewWitness(p.Clock, began, of, "")}, true, nil
}
