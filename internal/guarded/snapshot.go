package guarded

import (
	"context"
	"fmt"
	"maps"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded/precondition"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
	"github.com/xylem-io/xylem/internal/proof"
)

// DeleteSnapshot deletes a stamped VolumeSnapshot whose data is kept, if it is unchanged, the evidence
// covers it, and destruction is allowed.
func (l *Leaf) DeleteSnapshot(ctx context.Context, leaf *snapshotv1.VolumeSnapshot, evidence proof.Keeps) error {
	if err := l.covered(ctx, evidence, proof.DeleteSnapshot, leaf); err != nil {
		return err
	}
	return l.delete(ctx, leaf, precondition.Unchanged(leaf))
}

// DestroySnapshot deletes a stamped VolumeSnapshot, and its data unless its content is retained, if it is
// unchanged, the evidence covers it, nobody needs the data, and destruction is allowed.
func (l *Leaf) DestroySnapshot(ctx context.Context, leaf *snapshotv1.VolumeSnapshot, nobody proof.Unneeded, evidence proof.Destroys) error {
	if err := l.covered(ctx, proof.Destruction(nobody, evidence), proof.DeleteSnapshot, leaf); err != nil {
		return err
	}
	return l.delete(ctx, leaf, precondition.Unchanged(leaf))
}

// SetContentDelete sets the deletion policy of a stamped content to Delete, if the evidence
// covers it, nobody needs the data, and destruction is allowed.
func (l *Leaf) SetContentDelete(ctx context.Context, by Actor, content *snapshotv1.VolumeSnapshotContent, nobody proof.Unneeded, evidence proof.Destroys) error {
	if err := l.covered(ctx, proof.Destruction(nobody, evidence), proof.SetContentDelete, content); err != nil {
		return err
	}
	after := content.DeepCopy()
	after.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentDelete
	return l.patch(ctx, by, content, after)
}

// DestroyContent deletes a stamped content with policy Delete if it is unchanged, the evidence covers it,
// nobody needs the data, and destruction is allowed.
func (l *Leaf) DestroyContent(ctx context.Context, content *snapshotv1.VolumeSnapshotContent, nobody proof.Unneeded, evidence proof.Destroys) error {
	if err := l.covered(ctx, proof.Destruction(nobody, evidence), proof.DeleteContent, content); err != nil {
		return err
	}
	return l.delete(ctx, content, precondition.Unchanged(content))
}

// PatchContent changes a content in a member. The content must have this host's stamp, or belong to
// a VolumeSnapshot that has the stamp or whose UID is recorded in a content in the host. Only
// SetContentDelete can set its policy to Delete.
func (l *Leaf) PatchContent(ctx context.Context, by Actor, before, after *snapshotv1.VolumeSnapshotContent, leaf *snapshotv1.VolumeSnapshot, host *snapshotv1.VolumeSnapshotContent) error {
	ofLeaf := leaf != nil && l.owned(leaf) == nil && mirrorsnapshot.Binds(before, leaf.UID)
	recorded := host != nil && mirrorsnapshot.Own(host) && mirrorsnapshot.Binds(before, mirrorsnapshot.RecordOf(host).Snapshot)
	if l.owned(before) != nil && !ofLeaf && !recorded {
		return foreign(before, "neither the content nor its VolumeSnapshot has Xylem's stamp")
	}
	if !mirrorsnapshot.Retained(after) {
		return fmt.Errorf("set content %s to Delete without evidence: %w", before.Name, proof.ErrUnproven)
	}
	return l.patch(ctx, by, before, after)
}

// DropContent removes the driver's finalizer from a content in the host that is being deleted, if the
// evidence covers it.
func (r *Root) DropContent(ctx context.Context, by Actor, host *snapshotv1.VolumeSnapshotContent, evidence proof.Evidence) error {
	if !mirrorsnapshot.Own(host) || host.DeletionTimestamp == nil {
		return foreign(host, "its driver is not Xylem's, or it is not being deleted")
	}
	if err := covers(evidence, proof.DropContent, host); err != nil {
		return err
	}
	return r.patch(ctx, by, host, mirrorsnapshot.Release(host))
}

// PatchContent changes a content in the host with Xylem's driver. It may change xylem.io
// annotations, the fields that a driver's csi-snapshotter writes, and set the policy to Retain. Only
// DropContent can remove the driver's finalizer.
func (r *Root) PatchContent(ctx context.Context, by Actor, before, after *snapshotv1.VolumeSnapshotContent) error {
	if !mirrorsnapshot.Own(before) {
		return foreign(before, "its driver is not Xylem's")
	}
	allowed := before.DeepCopy()
	allowed.Annotations = maps.Clone(after.Annotations)
	for _, annotations := range []map[string]string{before.Annotations, after.Annotations} {
		for key := range annotations {
			if !strings.HasPrefix(key, v1alpha1.Prefix) && key != mirrorsnapshot.AnnBeingCreated && before.Annotations[key] != after.Annotations[key] {
				return foreign(before, "Xylem may change only its xylem.io annotations and those of a csi-snapshotter")
			}
		}
	}
	for _, record := range []string{v1alpha1.AnnotationPlacedIn, v1alpha1.AnnotationSource, v1alpha1.AnnotationLeafSnapshotUID, v1alpha1.AttributeLeafUID, v1alpha1.AttributeHandle} {
		if before.Annotations[record] != "" && after.Annotations[record] == "" {
			return fmt.Errorf("remove %s from host content %s without evidence: %w", record, before.Name, proof.ErrUnproven)
		}
	}
	if mirrorsnapshot.Retained(after) {
		allowed.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentRetain
	}
	if !equality.Semantic.DeepEqual(allowed, after) {
		return foreign(before, "Xylem may change only its xylem.io annotations, and set the policy to Retain")
	}
	return r.patch(ctx, by, before, after)
}

// contentSize is the approximate size in bytes of a content with a long error.
const contentSize = 8 << 10

// PatchContentStatus writes the status of a content in the host with Xylem's driver, as its
// csi-snapshotter would. It fails if the content has changed since it was read.
func (r *Root) PatchContentStatus(ctx context.Context, by Actor, before *snapshotv1.VolumeSnapshotContent, status *snapshotv1.VolumeSnapshotContentStatus) error {
	if !mirrorsnapshot.Own(before) {
		return foreign(before, "its driver is not Xylem's")
	}
	if err := r.pace.WaitFor(ctx, contentSize); err != nil {
		return err
	}
	after := before.DeepCopy()
	after.Status = status
	return r.patching(ctx, "patch_status", before, after, func() error {
		return r.client.Status().Patch(ctx, after, precondition.Patch(before), by.owner())
	})
}
