package proof

import (
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/mirror"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
)

// An API server that does not serve snapshots responds to a get with NotFound, as it does for a
// missing snapshot. So these proofs list by name: if the API server does not serve the kind, the
// list fails and proves nothing.

func liveSnapshot(ctx context.Context, r client.Reader, key types.NamespacedName) (*snapshotv1.VolumeSnapshot, error) {
	var list snapshotv1.VolumeSnapshotList
	if key.Name == "" {
		return nil, unproven("a VolumeSnapshot has no name")
	}
	if err := r.List(ctx, &list, client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name}); err != nil {
		return nil, fmt.Errorf("read VolumeSnapshot %s: %w", key, err)
	}
	if len(list.Items) == 0 {
		return nil, nil //nolint:nilnil // absence is an answer, as with index.Find
	}
	return &list.Items[0], nil
}

func liveContent(ctx context.Context, r client.Reader, name string) (*snapshotv1.VolumeSnapshotContent, error) {
	var list snapshotv1.VolumeSnapshotContentList
	if name == "" {
		return nil, unproven("a VolumeSnapshotContent has no name")
	}
	if err := r.List(ctx, &list, client.MatchingFields{"metadata.name": name}); err != nil {
		return nil, fmt.Errorf("read VolumeSnapshotContent %s: %w", name, err)
	}
	if len(list.Items) == 0 {
		return nil, nil //nolint:nilnil // absence is an answer, as with index.Find
	}
	return &list.Items[0], nil
}

// SnapshotEnded is the proof that the host's VolumeSnapshot with a UID was deleted, or is being
// deleted, which cannot be undone.
type SnapshotEnded struct {
	w *witness
	// gone: it no longer exists, so no claim can be restored from it.
	gone bool
}

// SnapshotEnded proves it by a live read of the VolumeSnapshot's name.
func (p Prover) SnapshotEnded(ctx context.Context, root types.NamespacedName, uid types.UID) (SnapshotEnded, bool, error) {
	began := p.Clock.Now()
	now, err := liveSnapshot(ctx, p.HostLive, root)
	if err != nil {
		return SnapshotEnded{}, false, fmt.Errorf("prove that snapshot %s has ended: %w", root, err)
	}
	gone := now == nil || now.UID != uid
	if uid == "" || !gone && now.DeletionTimestamp == nil {
		return SnapshotEnded{}, false, nil
	}
	return SnapshotEnded{p.testify(began, uid, ""), gone}, true, nil
}

// ContentEnded is the proof that a content of the host must be destroyed with its snapshot.
type ContentEnded struct{ hostContent }

// ContentUnchanged is the proof that a content of the host has not changed.
type ContentUnchanged struct{ hostContent }

// hostContent is a content of the host as a live read showed it.
type hostContent struct {
	w       *witness
	content *snapshotv1.VolumeSnapshotContent
}

// ContentEnded proves, by a live read of the content, that it is being deleted with policy
// Delete, that the snapshot-controller announces the deletion of its VolumeSnapshot, and that it
// is not abandoned.
func (p Prover) ContentEnded(ctx context.Context, seen *snapshotv1.VolumeSnapshotContent) (ContentEnded, bool, error) {
	c, ok, err := p.hostContent(ctx, seen, func(now *snapshotv1.VolumeSnapshotContent) bool {
		return now.DeletionTimestamp != nil && now.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete &&
			mirrorsnapshot.Announced(now) && !mirrorsnapshot.Abandoned(now) && mirrorsnapshot.PlacedIn(now) == p.ClusterID
	})
	return ContentEnded{c}, ok, err
}

// ContentUnchanged proves it by a live read of the content.
func (p Prover) ContentUnchanged(ctx context.Context, seen *snapshotv1.VolumeSnapshotContent) (ContentUnchanged, bool, error) {
	c, ok, err := p.hostContent(ctx, seen, func(now *snapshotv1.VolumeSnapshotContent) bool { return now.ResourceVersion == seen.ResourceVersion })
	return ContentUnchanged{c}, ok, err
}

func (p Prover) hostContent(ctx context.Context, seen *snapshotv1.VolumeSnapshotContent, still func(*snapshotv1.VolumeSnapshotContent) bool) (hostContent, bool, error) {
	began := p.Clock.Now()
	now, err := liveContent(ctx, p.HostLive, seen.Name)
	if err != nil {
		return hostContent{}, false, fmt.Errorf("prove that content %s is unchanged: %w", seen.Name, err)
	}
	if now == nil || now.UID != seen.UID || now.Spec.VolumeSnapshotRef.UID != seen.Spec.VolumeSnapshotRef.UID || !still(now) {
		return hostContent{}, false, nil
	}
	return hostContent{p.testify(began, now.UID, now.ResourceVersion), now}, true, nil
}

// SnapshotPlacedHere proves, by a live read, that a content of the host is placed in this member,
// that it records no leaf, and that it has not ended.
func (p Prover) SnapshotPlacedHere(ctx context.Context, seen *snapshotv1.VolumeSnapshotContent) (bool, error) {
	_, ok, err := p.hostContent(ctx, seen, func(now *snapshotv1.VolumeSnapshotContent) bool {
		return mirrorsnapshot.PlacedIn(now) == p.ClusterID && mirrorsnapshot.RecordOf(now).Snapshot == "" && now.DeletionTimestamp == nil
	})
	return ok, err
}

// NotRepresented is the proof that the host has no content for the VolumeSnapshot with a UID.
type NotRepresented struct{ w *witness }

// NotRepresented proves it by a live read of the name that the snapshot-controller gives it.
func (p Prover) NotRepresented(ctx context.Context, root types.UID) (NotRepresented, bool, error) {
	began := p.Clock.Now()
	now, err := liveContent(ctx, p.HostLive, mirrorsnapshot.ContentName(root))
	if err != nil || now != nil {
		return NotRepresented{}, false, err
	}
	return NotRepresented{p.testify(began, root, "")}, true, nil
}

// LeafContent is the proof of the state, in the member, of the content with a leaf content's name.
type LeafContent struct {
	w       *witness
	name    string
	content *snapshotv1.VolumeSnapshotContent // nil: none
}

// LeafContent proves, by a live read of the leaf content of a leaf VolumeSnapshot, that wanted
// accepts it. wanted gets nil if it does not exist.
func (p Prover) LeafContent(ctx context.Context, leaf *snapshotv1.VolumeSnapshot, wanted func(*snapshotv1.VolumeSnapshotContent) bool) (LeafContent, bool, error) {
	began, name := p.Clock.Now(), mirrorsnapshot.ContentName(leaf.UID)
	content, err := liveContent(ctx, p.Live, name)
	if err != nil || !wanted(content) {
		return LeafContent{}, false, err
	}
	if content == nil {
		return LeafContent{w: p.testify(began, "", ""), name: name}, true, nil
	}
	return LeafContent{p.testify(began, content.UID, content.ResourceVersion), name, content}, true, nil
}

// of reports whether the proof is for the content of a leaf VolumeSnapshot.
func (l LeafContent) of(leaf *snapshotv1.VolumeSnapshot) bool {
	return l.w != nil && l.name == mirrorsnapshot.ContentName(leaf.UID)
}

// SnapshotLeafGone proves, by live reads, that neither the leaf VolumeSnapshot nor the leaf content
// of a host content exists, in a member that was not restored.
func (p Prover) SnapshotLeafGone(ctx context.Context, host *snapshotv1.VolumeSnapshotContent) (bool, error) {
	record, root := mirrorsnapshot.RecordOf(host), mirrorsnapshot.RootOf(host)
	leaf, err := liveSnapshot(ctx, p.Live, root)
	if err != nil {
		return false, fmt.Errorf("prove that leaf snapshot %s is gone: %w", root, err)
	}
	if leaf != nil && (leaf.UID == record.Snapshot || stampedRoot(leaf) == host.Spec.VolumeSnapshotRef.UID) {
		return false, nil
	}
	if record.Snapshot != "" {
		content, err := liveContent(ctx, p.Live, mirrorsnapshot.ContentName(record.Snapshot))
		if err != nil {
			return false, fmt.Errorf("prove that leaf content %s is gone: %w", mirrorsnapshot.ContentName(record.Snapshot), err)
		}
		if content != nil && (record.Content == "" || content.UID == record.Content) {
			return false, nil
		}
	}
	err = p.Unrestored(ctx)
	return err == nil, err
}

// DestroyingSnapshot is evidence that a snapshot must be destroyed with its root (I2): its host
// content is being deleted with policy Delete, and its VolumeSnapshot has ended. For the leaf
// VolumeSnapshot: its content is the recorded one, or does not exist.
type DestroyingSnapshot struct {
	Host ContentEnded
	Root SnapshotEnded
	Leaf LeafContent
}

// KeepingSnapshot is evidence that deleting a leaf VolumeSnapshot keeps its data: its root has
// ended, and its content is retained, or does not exist. It also proves that no root needs it: its
// host content is as observed (Host), or does not exist (None).
type KeepingSnapshot struct {
	Host   ContentUnchanged
	Root   SnapshotEnded
	Leaf   LeafContent
	None   NotRepresented
	Member MemberCurrent
}

func (DestroyingSnapshot) sealed() {}
func (KeepingSnapshot) sealed()    {}

// Covers implements Evidence.
func (e DestroyingSnapshot) Covers(action Action, object client.Object) error {
	if e.Host.w == nil || e.Root.w == nil || e.Root.w.uid != e.Host.content.Spec.VolumeSnapshotRef.UID || stampedRoot(object) != e.Root.w.uid {
		return unproven("it is not known that the snapshot of %T %s has ended", object, client.ObjectKeyFromObject(object))
	}
	record := mirrorsnapshot.RecordOf(e.Host.content)
	switch object := object.(type) {
	case *snapshotv1.VolumeSnapshotContent:
		if !destroysContent(record, action, object) {
			return unproven("the evidence is not for leaf content %q", object.Name)
		}
		return spend(e.Host.w, e.Root.w)
	case *snapshotv1.VolumeSnapshot:
		if action != DeleteSnapshot || object.UID != record.Snapshot || record.Snapshot == "" || !e.Leaf.of(object) ||
			!mirrorsnapshot.Retained(e.Leaf.content) && (e.Leaf.content.UID != record.Content || !record.Names(e.Leaf.content)) {
			return unproven("the evidence is not for leaf snapshot %q", client.ObjectKeyFromObject(object))
		}
		return spend(e.Host.w, e.Root.w, e.Leaf.w)
	}
	return unproven("the evidence is not for a %T", object)
}

// destroysContent reports whether an action may destroy a leaf content. It must be the recorded
// content of the recorded snapshot, and have had policy Delete in the member.
func destroysContent(record mirrorsnapshot.Record, action Action, content *snapshotv1.VolumeSnapshotContent) bool {
	allowed := action == SetContentDelete || action == DeleteContent && content.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete
	return allowed && record.Content != "" && record.Names(content) && content.UID == record.Content && mirrorsnapshot.Policy(content) == snapshotv1.VolumeSnapshotContentDelete
}

// Covers implements Evidence.
func (e KeepingSnapshot) Covers(action Action, object client.Object) error {
	leaf, ok := object.(*snapshotv1.VolumeSnapshot)
	if !ok || action != DeleteSnapshot || e.Root.w == nil || e.Root.w.uid != stampedRoot(leaf) {
		return unproven("the evidence is not for %T %s", object, client.ObjectKeyFromObject(object))
	}
	if !e.Leaf.of(leaf) || !mirrorsnapshot.Retained(e.Leaf.content) {
		return unproven("the data of leaf snapshot %q may be deleted with it", client.ObjectKeyFromObject(leaf))
	}
	if e.Host.w != nil {
		ends := e.Root.gone || e.Host.content.DeletionTimestamp != nil
		if !ends || e.Host.content.Spec.VolumeSnapshotRef.UID != e.Root.w.uid {
			return unproven("the host content may need leaf snapshot %q", client.ObjectKeyFromObject(leaf))
		}
		return spend(e.Host.w, e.Root.w, e.Leaf.w)
	}
	if !e.Root.gone || e.None.w == nil || e.None.w.uid != e.Root.w.uid {
		return unproven("a host content may represent leaf snapshot %q", client.ObjectKeyFromObject(leaf))
	}
	return spend(e.Root.w, e.Leaf.w, e.None.w, e.Member.w)
}

// KeptSnapshot proves, by live reads, that deleting a leaf VolumeSnapshot keeps its data. host is
// its content in the host, or nil.
func (p Prover) KeptSnapshot(ctx context.Context, host *snapshotv1.VolumeSnapshotContent, leaf *snapshotv1.VolumeSnapshot) (e KeepingSnapshot, proven bool, err error) {
	origin, _ := mirror.OriginIn(p.HostID, leaf)
	if host != nil {
		if e.Host, proven, err = p.ContentUnchanged(ctx, host); err != nil || !proven {
			return e, false, err
		}
	}
	if e.Root, proven, err = p.SnapshotEnded(ctx, origin.Root, origin.UID); err != nil || !proven {
		return e, false, err
	}
	if e.Leaf, proven, err = p.LeafContent(ctx, leaf, mirrorsnapshot.Retained); err != nil || !proven || host != nil {
		return e, proven, err
	}
	if e.None, proven, err = p.NotRepresented(ctx, origin.UID); err != nil || !proven {
		return e, false, err
	}
	e.Member, err = p.MemberCurrent(ctx)
	return e, err == nil, err
}
