package proof

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/mirror"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
)

// DestroyingSnapshot is evidence that a snapshot must be destroyed with its root (I2): its host
// content is being deleted with policy Delete, and its VolumeSnapshot has ended. To delete the leaf
// VolumeSnapshot, its content must be the recorded one, or retained, or not exist. To delete the leaf
// content, the leaf VolumeSnapshot must be gone.
type DestroyingSnapshot struct {
	Host     ContentEnded
	Root     SnapshotEnded
	Leaf     LeafContent
	LeafGone LeafSnapshotGone
}

// KeepingSnapshot is evidence that deleting a leaf VolumeSnapshot keeps its data: its root has
// ended, and its content is retained, or does not exist. It also proves that no root needs the
// VolumeSnapshot: its host content has not changed since it was observed (Host), or does not exist
// (NoContent).
type KeepingSnapshot struct {
	Host      ContentUnchanged
	Root      SnapshotEnded
	Leaf      LeafContent
	NoContent NotRepresented
	Member    MemberCurrent
}

// DestroysDataOf implements proof.DataDestroyingEvidence.
func (e DestroyingSnapshot) DestroysDataOf(EvidenceKey) types.UID {
	if e.Root.witness == nil {
		return ""
	}
	return e.Root.witness.UID
}

// KeepsData implements proof.DataKeepingEvidence.
func (KeepingSnapshot) KeepsData(EvidenceKey) {}

// CoversWrite implements Evidence.
func (e DestroyingSnapshot) CoversWrite(_ EvidenceKey, action Action, object client.Object) error {
	if e.Host.witness == nil || e.Root.witness == nil || e.Root.witness.UID != e.Host.content.Spec.VolumeSnapshotRef.UID || mirror.StampedRootUID(object) != e.Root.witness.UID {
		return NewUnprovenError("there is no proof that the snapshot of %T %s has ended", object, client.ObjectKeyFromObject(object))
	}
	record := mirrorsnapshot.ContentRecordOf(e.Host.content)
	switch object := object.(type) {
	case *snapshotv1.VolumeSnapshotContent:
		if !mayDestroyContent(record, action, object) {
			return NewUnprovenError("the evidence is not for leaf content %q", object.Name)
		}
		if action == DeleteContent {
			if e.LeafGone.witness == nil || e.LeafGone.witness.UID != object.Spec.VolumeSnapshotRef.UID {
				return NewUnprovenError("there is no proof that the leaf snapshot of content %q is gone", object.Name)
			}
			return SpendProofs(e.Host.witness, e.Root.witness, e.LeafGone.witness)
		}
		return SpendProofs(e.Host.witness, e.Root.witness)
	case *snapshotv1.VolumeSnapshot:
		if action != DeleteSnapshot || object.UID != record.Snapshot || record.Snapshot == "" || !e.Leaf.isContentOf(object) ||
			!mirrorsnapshot.IsContentRetained(e.Leaf.content) && (e.Leaf.content.UID != record.Content || !record.MatchesHandleOf(e.Leaf.content)) {
			return NewUnprovenError("the evidence is not for leaf snapshot %q", client.ObjectKeyFromObject(object))
		}
		return SpendProofs(e.Host.witness, e.Root.witness, e.Leaf.witness)
	}
	return NewUnprovenError("the evidence is not for a %T", object)
}

// mayDestroyContent reports whether an action may destroy a leaf content. The content must be the
// recorded content of the recorded snapshot, and its original policy in the member must be Delete.
func mayDestroyContent(record mirrorsnapshot.ContentRecord, action Action, content *snapshotv1.VolumeSnapshotContent) bool {
	allowed := action == SetContentDelete || action == DeleteContent && content.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete
	return allowed && record.Content != "" && record.MatchesHandleOf(content) && content.UID == record.Content && mirrorsnapshot.MemberDeletionPolicy(content) == snapshotv1.VolumeSnapshotContentDelete
}

// CoversWrite implements Evidence.
func (e KeepingSnapshot) CoversWrite(_ EvidenceKey, action Action, object client.Object) error {
	leaf, ok := object.(*snapshotv1.VolumeSnapshot)
	if !ok || action != DeleteSnapshot || e.Root.witness == nil || e.Root.witness.UID != mirror.StampedRootUID(leaf) {
		return NewUnprovenError("the evidence is not for %T %s", object, client.ObjectKeyFromObject(object))
	}
	if !e.Leaf.isContentOf(leaf) || !mirrorsnapshot.IsContentRetained(e.Leaf.content) {
		return NewUnprovenError("the data of leaf snapshot %q may be deleted with it", client.ObjectKeyFromObject(leaf))
	}
	if e.Host.witness != nil {
		ends := e.Root.gone || e.Host.content.DeletionTimestamp != nil
		if !ends || e.Host.content.Spec.VolumeSnapshotRef.UID != e.Root.witness.UID {
			return NewUnprovenError("the host content may need leaf snapshot %q", client.ObjectKeyFromObject(leaf))
		}
		return SpendProofs(e.Host.witness, e.Root.witness, e.Leaf.witness)
	}
	if !e.Root.gone || e.NoContent.witness == nil || e.NoContent.witness.UID != e.Root.witness.UID {
		return NewUnprovenError("a host content may represent leaf snapshot %q", client.ObjectKeyFromObject(leaf))
	}
	return SpendProofs(e.Root.witness, e.Leaf.witness, e.NoContent.witness, e.Member.Witness())
}

// ProveLeafSnapshotDataKept proves by live reads that deleting a leaf VolumeSnapshot keeps its data. host is its
// content in the host, or nil.
func (p SnapshotProver) ProveLeafSnapshotDataKept(ctx context.Context, host *snapshotv1.VolumeSnapshotContent, leaf *snapshotv1.VolumeSnapshot) (e KeepingSnapshot, proven bool, err error) {
	origin, _ := mirror.LeafOriginFromHost(p.HostID, leaf)
	if host != nil {
		if e.Host, proven, err = p.ProveContentUnchanged(ctx, host); err != nil || !proven {
			return e, false, err
		}
	}
	if e.Root, proven, err = p.ProveSnapshotEnded(ctx, origin.Root, origin.UID); err != nil || !proven {
		return e, false, err
	}
	if e.Leaf, proven, err = p.ProveLeafContent(ctx, leaf.UID, mirrorsnapshot.IsContentRetained); err != nil || !proven || host != nil {
		return e, proven, err
	}
	if e.NoContent, proven, err = p.ProveNotRepresented(ctx, origin.UID); err != nil || !proven {
		return e, false, err
	}
	e.Member, err = p.ProveMemberCurrent(ctx)
	return e, err == nil, err
}
