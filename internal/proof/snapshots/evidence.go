package snapshots

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/mirror"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/proof/internal/witness"
)

// DestroyingSnapshot is evidence that a snapshot must be destroyed with its root (I2): its host
// content is being deleted with policy Delete, and its VolumeSnapshot has ended. To delete the leaf
// VolumeSnapshot, its content must be the recorded one, or retained, or not exist. To delete the leaf
// content, the leaf VolumeSnapshot must be gone.
type DestroyingSnapshot struct {
	Host ContentEnded
	Root SnapshotEnded
	Leaf LeafContent
	Gone LeafSnapshotGone
}

// KeepingSnapshot is evidence that deleting a leaf VolumeSnapshot keeps its data: its root has
// ended, and its content is retained, or does not exist. It also proves that no root needs the
// VolumeSnapshot: its host content has not changed since it was observed (Host), or does not exist
// (None).
type KeepingSnapshot struct {
	Host   ContentUnchanged
	Root   SnapshotEnded
	Leaf   LeafContent
	None   NotRepresented
	Member proof.MemberCurrent
}

// Destroys implements proof.Destroys.
func (e DestroyingSnapshot) Destroys(witness.Key) types.UID {
	if e.Root.w == nil {
		return ""
	}
	return e.Root.w.UID
}

// Keeps implements proof.Keeps.
func (KeepingSnapshot) Keeps(witness.Key) {}

// Covers implements Evidence.
func (e DestroyingSnapshot) Covers(_ witness.Key, action proof.Action, object client.Object) error {
	if e.Host.w == nil || e.Root.w == nil || e.Root.w.UID != e.Host.content.Spec.VolumeSnapshotRef.UID || mirror.RootUID(object) != e.Root.w.UID {
		return witness.Unproven("there is no proof that the snapshot of %T %s has ended", object, client.ObjectKeyFromObject(object))
	}
	record := mirrorsnapshot.RecordOf(e.Host.content)
	switch object := object.(type) {
	case *snapshotv1.VolumeSnapshotContent:
		if !destroysContent(record, action, object) {
			return witness.Unproven("the evidence is not for leaf content %q", object.Name)
		}
		if action == proof.DeleteContent {
			if e.Gone.w == nil || e.Gone.w.UID != object.Spec.VolumeSnapshotRef.UID {
				return witness.Unproven("there is no proof that the leaf snapshot of content %q is gone", object.Name)
			}
			return witness.Spend(e.Host.w, e.Root.w, e.Gone.w)
		}
		return witness.Spend(e.Host.w, e.Root.w)
	case *snapshotv1.VolumeSnapshot:
		if action != proof.DeleteSnapshot || object.UID != record.Snapshot || record.Snapshot == "" || !e.Leaf.of(object) ||
			!mirrorsnapshot.Retained(e.Leaf.content) && (e.Leaf.content.UID != record.Content || !record.Names(e.Leaf.content)) {
			return witness.Unproven("the evidence is not for leaf snapshot %q", client.ObjectKeyFromObject(object))
		}
		return witness.Spend(e.Host.w, e.Root.w, e.Leaf.w)
	}
	return witness.Unproven("the evidence is not for a %T", object)
}

// destroysContent reports whether an action may destroy a leaf content. The content must be the
// recorded content of the recorded snapshot, and its original policy in the member must be Delete.
func destroysContent(record mirrorsnapshot.Record, action proof.Action, content *snapshotv1.VolumeSnapshotContent) bool {
	allowed := action == proof.SetContentDelete || action == proof.DeleteContent && content.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete
	return allowed && record.Content != "" && record.Names(content) && content.UID == record.Content && mirrorsnapshot.Policy(content) == snapshotv1.VolumeSnapshotContentDelete
}

// Covers implements Evidence.
func (e KeepingSnapshot) Covers(_ witness.Key, action proof.Action, object client.Object) error {
	leaf, ok := object.(*snapshotv1.VolumeSnapshot)
	if !ok || action != proof.DeleteSnapshot || e.Root.w == nil || e.Root.w.UID != mirror.RootUID(leaf) {
		return witness.Unproven("the evidence is not for %T %s", object, client.ObjectKeyFromObject(object))
	}
	if !e.Leaf.of(leaf) || !mirrorsnapshot.Retained(e.Leaf.content) {
		return witness.Unproven("the data of leaf snapshot %q may be deleted with it", client.ObjectKeyFromObject(leaf))
	}
	if e.Host.w != nil {
		ends := e.Root.gone || e.Host.content.DeletionTimestamp != nil
		if !ends || e.Host.content.Spec.VolumeSnapshotRef.UID != e.Root.w.UID {
			return witness.Unproven("the host content may need leaf snapshot %q", client.ObjectKeyFromObject(leaf))
		}
		return witness.Spend(e.Host.w, e.Root.w, e.Leaf.w)
	}
	if !e.Root.gone || e.None.w == nil || e.None.w.UID != e.Root.w.UID {
		return witness.Unproven("a host content may represent leaf snapshot %q", client.ObjectKeyFromObject(leaf))
	}
	return witness.Spend(e.Root.w, e.Leaf.w, e.None.w, e.Member.Witness())
}

// KeptSnapshot proves by live reads that deleting a leaf VolumeSnapshot keeps its data. host is its
// content in the host, or nil.
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
	if e.Leaf, proven, err = p.LeafContent(ctx, leaf.UID, mirrorsnapshot.Retained); err != nil || !proven || host != nil {
		return e, proven, err
	}
	if e.None, proven, err = p.NotRepresented(ctx, origin.UID); err != nil || !proven {
		return e, false, err
	}
	e.Member, err = p.MemberCurrent(ctx)
	return e, err == nil, err
}
