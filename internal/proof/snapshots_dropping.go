package proof

import (
	"context"
	"fmt"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
)

// DroppableContent is evidence that the host no longer needs a content that is being deleted. It covers
// one version of the content.
type DroppableContent struct{ witness *Witness }

// CoversWrite implements Evidence.
func (e DroppableContent) CoversWrite(_ EvidenceKey, action Action, object client.Object) error {
	if action != DropContent || !e.witness.MatchesVersion(object) {
		return NewUnprovenError("the evidence is not for this version of host content %q", object.GetName())
	}
	return SpendProofs(e.witness)
}

func newDroppableContent(c clock.PassiveClock, began time.Time, host *snapshotv1.VolumeSnapshotContent) DroppableContent {
	return DroppableContent{NewWitness(c, began, host.UID, host.ResourceVersion)}
}

// ProveSnapshotLeafGone proves by live reads that neither the leaf VolumeSnapshot nor the leaf content
// of a host content exists, and that the member was not restored while this process ran.
func (p SnapshotProver) ProveSnapshotLeafGone(ctx context.Context, host *snapshotv1.VolumeSnapshotContent) (DroppableContent, bool, error) {
	began, record, root := p.Clock.Now(), mirrorsnapshot.ContentRecordOf(host), mirrorsnapshot.RootSnapshotKey(host)
	leaf, err := index.ReadLiveSnapshot(ctx, p.Live, root)
	if err != nil {
		return DroppableContent{}, false, fmt.Errorf("prove that leaf snapshot %s is gone: %w", root, err)
	}
	if leaf != nil && (leaf.UID == record.Snapshot || mirror.StampedRootUID(leaf) == host.Spec.VolumeSnapshotRef.UID) {
		return DroppableContent{}, false, nil
	}
	if record.Snapshot != "" {
		content, err := index.ReadLiveContent(ctx, p.Live, mirrorsnapshot.ContentName(record.Snapshot))
		if err != nil {
			return DroppableContent{}, false, fmt.Errorf("prove that leaf content %s is gone: %w", mirrorsnapshot.ContentName(record.Snapshot), err)
		}
		if content != nil && (record.Content == "" || content.UID == record.Content) {
			return DroppableContent{}, false, nil
		}
	}
	if err := p.CheckUnrestored(ctx); err != nil {
		return DroppableContent{}, false, err
	}
	return newDroppableContent(p.Clock, began, host), true, nil
}

// ProveSnapshotKept proves by live reads that a host content has not changed and that its VolumeSnapshot
// has ended. They also show whether the member has the leaf content. If it does not, ProveSnapshotKept
// returns missing and proves that the member was not restored while this process ran. Then nothing else
// names the snapshot, so the caller first records it if a restore may have lost the leaf content.
func (p SnapshotProver) ProveSnapshotKept(ctx context.Context, host *snapshotv1.VolumeSnapshotContent) (e DroppableContent, proven, missing bool, err error) {
	began := p.Clock.Now()
	if _, same, err := p.ProveContentUnchanged(ctx, host); err != nil || !same {
		return DroppableContent{}, false, false, err
	}
	if _, ended, err := p.ProveSnapshotEnded(ctx, mirrorsnapshot.RootSnapshotKey(host), host.Spec.VolumeSnapshotRef.UID); err != nil || !ended {
		return DroppableContent{}, false, false, err
	}
	if leaf := mirrorsnapshot.ContentRecordOf(host).Snapshot; leaf != "" {
		content, err := index.ReadLiveContent(ctx, p.Live, mirrorsnapshot.ContentName(leaf))
		if err != nil {
			return DroppableContent{}, false, false, fmt.Errorf("look for leaf content %s: %w", mirrorsnapshot.ContentName(leaf), err)
		}
		if missing = content == nil; missing {
			if err := p.CheckUnrestored(ctx); err != nil {
				return DroppableContent{}, false, false, err
			}
		}
	}
	return newDroppableContent(p.Clock, began, host), true, missing, nil
}

// ProveSnapshotUnplaced proves by a live read that a host content is placed in no member.
func (p SnapshotProver) ProveSnapshotUnplaced(ctx context.Context, host *snapshotv1.VolumeSnapshotContent) (DroppableContent, bool, error) {
	began := p.Clock.Now()
	if mirrorsnapshot.ContentPlacedIn(host) != "" {
		return DroppableContent{}, false, nil
	}
	if _, same, err := p.ProveContentUnchanged(ctx, host); err != nil || !same {
		return DroppableContent{}, false, err
	}
	return newDroppableContent(p.Clock, began, host), true, nil
}

// DroppableIfReleased returns evidence for a host content that an admin has abandoned, or whose member was
// deregistered. It reads nothing, because the content itself is the proof, and guarded writes only if
// the content is unchanged.
func (p SnapshotProver) DroppableIfReleased(host *snapshotv1.VolumeSnapshotContent) (DroppableContent, bool) {
	if !mirrorsnapshot.IsAbandonedSnapshot(host) && !mirrorsnapshot.IsClusterGone(host) {
		return DroppableContent{}, false
	}
	return newDroppableContent(p.Clock, p.Clock.Now(), host), true
}
