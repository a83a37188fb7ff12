package guarded

import (
	"context"
	"fmt"
	"maps"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/xylem-io/xylem/api/v1alpha1"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
	"github.com/xylem-io/xylem/internal/proof"
)

// DeleteSnapshot deletes a stamped VolumeSnapshot whose data is kept, if it is unchanged, the evidence
// covers it, and destruction is allowed.
func (l *MemberWriter) DeleteSnapshot(ctx context.Context, leaf *snapshotv1.VolumeSnapshot, evidence proof.DataKeepingEvidence) error {
	if err := l.checkDestructiveWrite(ctx, evidence, proof.DeleteSnapshot, leaf); err != nil {
		return err
	}
	return l.deleteObject(ctx, leaf, IfUnchanged(leaf))
}

// DestroySnapshot deletes a stamped VolumeSnapshot, and its data unless its content is retained, if it is
// unchanged, the evidence covers it, nobody needs the data, and destruction is allowed.
func (l *MemberWriter) DestroySnapshot(ctx context.Context, leaf *snapshotv1.VolumeSnapshot, nobody proof.DataUnneeded, evidence proof.DataDestroyingEvidence) error {
	if err := l.checkDestructiveWrite(ctx, proof.DestructionEvidence(nobody, evidence), proof.DeleteSnapshot, leaf); err != nil {
		return err
	}
	return l.deleteObject(ctx, leaf, IfUnchanged(leaf))
}

// SetContentPolicyDelete sets the deletion policy of a stamped content to Delete, if the evidence
// covers it, nobody needs the data, and destruction is allowed.
func (l *MemberWriter) SetContentPolicyDelete(ctx context.Context, by Actor, content *snapshotv1.VolumeSnapshotContent, nobody proof.DataUnneeded, evidence proof.DataDestroyingEvidence) error {
	if err := l.checkDestructiveWrite(ctx, proof.DestructionEvidence(nobody, evidence), proof.SetContentDelete, content); err != nil {
		return err
	}
	after := content.DeepCopy()
	after.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentDelete
	return l.patchObject(ctx, by, content, after)
}

// DestroyLeafContent deletes a stamped content with policy Delete if it is unchanged, the evidence covers it,
// nobody needs the data, and destruction is allowed.
func (l *MemberWriter) DestroyLeafContent(ctx context.Context, content *snapshotv1.VolumeSnapshotContent, nobody proof.DataUnneeded, evidence proof.DataDestroyingEvidence) error {
	if err := l.checkDestructiveWrite(ctx, proof.DestructionEvidence(nobody, evidence), proof.DeleteContent, content); err != nil {
		return err
	}
	return l.deleteObject(ctx, content, IfUnchanged(content))
}

// PatchLeafContent changes a content in a member. The content must have this host's stamp, or belong to
// a VolumeSnapshot that has the stamp or whose UID is recorded in a content in the host. Only
// SetContentPolicyDelete can set its policy to Delete.
func (l *MemberWriter) PatchLeafContent(ctx context.Context, by Actor, before, after *snapshotv1.VolumeSnapshotContent, leaf *snapshotv1.VolumeSnapshot, host *snapshotv1.VolumeSnapshotContent) error {
	ofLeaf := leaf != nil && l.checkStamped(leaf) == nil && mirrorsnapshot.IsContentOfSnapshot(before, leaf.UID)
	recorded := host != nil && mirrorsnapshot.IsXylemContent(host) && mirrorsnapshot.IsContentOfSnapshot(before, mirrorsnapshot.ContentRecordOf(host).Snapshot)
	if l.checkStamped(before) != nil && !ofLeaf && !recorded {
		return newForeignError(before, "neither the content nor its VolumeSnapshot has Xylem's stamp")
	}
	if !mirrorsnapshot.IsContentRetained(after) {
		return fmt.Errorf("set content %s to Delete without evidence: %w", before.Name, proof.ErrUnproven)
	}
	return l.patchObject(ctx, by, before, after)
}

// DropHostContent removes the driver's finalizer from a content in the host that is being deleted, if the
// evidence covers it.
func (r *HostWriter) DropHostContent(ctx context.Context, by Actor, host *snapshotv1.VolumeSnapshotContent, evidence proof.Evidence) error {
	if !mirrorsnapshot.IsXylemContent(host) || host.DeletionTimestamp == nil {
		return newForeignError(host, "its driver is not Xylem's, or it is not being deleted")
	}
	if err := checkEvidence(evidence, proof.DropContent, host); err != nil {
		return err
	}
	return r.patchObject(ctx, by, host, mirrorsnapshot.ContentWithoutFinalizer(host))
}

// PatchHostContent changes a content in the host with Xylem's driver. It may change xylem.io
// annotations, the fields that a driver's csi-snapshotter writes, and set the policy to Retain. Only
// DropHostContent can remove the driver's finalizer.
func (r *HostWriter) PatchHostContent(ctx context.Context, by Actor, before, after *snapshotv1.VolumeSnapshotContent) error {
	if !mirrorsnapshot.IsXylemContent(before) {
		return newForeignError(before, "its driver is not Xylem's")
	}
	allowed := before.DeepCopy()
	allowed.Annotations = maps.Clone(after.Annotations)
	for _, annotations := range []map[string]string{before.Annotations, after.Annotations} {
		for key := range annotations {
			if !strings.HasPrefix(key, v1alpha1.Prefix) && key != mirrorsnapshot.AnnBeingCreated && before.Annotations[key] != after.Annotations[key] {
				return newForeignError(before, "Xylem may change only its xylem.io annotations and those of a csi-snapshotter")
			}
		}
	}
	for _, record := range []string{v1alpha1.AnnotationPlacedIn, v1alpha1.AnnotationSource, v1alpha1.AnnotationLeafSnapshotUID, v1alpha1.AttributeLeafUID, v1alpha1.AttributeHandle} {
		if before.Annotations[record] != "" && after.Annotations[record] == "" {
			return fmt.Errorf("remove %s from host content %s without evidence: %w", record, before.Name, proof.ErrUnproven)
		}
	}
	if mirrorsnapshot.IsContentRetained(after) {
		allowed.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentRetain
	}
	if !equality.Semantic.DeepEqual(allowed, after) {
		return newForeignError(before, "Xylem may change only its xylem.io annotations, and set the policy to Retain")
	}
	return r.patchObject(ctx, by, before, after)
}

// contentSizeEstimate is the approximate size in bytes of a content with a long error.
const contentSizeEstimate = 8 << 10

// PatchHostContentStatus writes the status of a content in the host with Xylem's driver, as its
// csi-snapshotter would. It fails if the content has changed since it was read.
func (r *HostWriter) PatchHostContentStatus(ctx context.Context, by Actor, before *snapshotv1.VolumeSnapshotContent, status *snapshotv1.VolumeSnapshotContentStatus) error {
	if !mirrorsnapshot.IsXylemContent(before) {
		return newForeignError(before, "its driver is not Xylem's")
	}
	if err := r.statusBytes.WaitFor(ctx, contentSizeEstimate); err != nil {
		return err
	}
	after := before.DeepCopy()
	after.Status = status
	return r.sendPatch(ctx, "patch_status", before, after, func() error {
		return r.client.Status().Patch(ctx, after, ConditionalPatch(before), by.fieldOwner())
	})
}
