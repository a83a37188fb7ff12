package guarded

import (
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/weigh"
)

// MemberWriter writes to a member: to objects with this host's stamp, and to the volumes of stamped claims.
type MemberWriter struct {
	writer
	hostID string
}

// NewMemberWriter creates the writer for one member. cluster is the registration's name.
func NewMemberWriter(c client.Client, hostID, cluster string, guard Guard) *MemberWriter {
	return &MemberWriter{writer: newWriter(c, cluster, MemberSide, guard), hostID: hostID}
}

// CreateStamped creates a stamped object. It returns AlreadyExists unchanged, because only the next
// observation shows who owns the other object.
func (l *MemberWriter) CreateStamped(ctx context.Context, by Actor, obj client.Object) error {
	if err := l.checkStamped(obj); err != nil {
		return err
	}
	if err := checkLeafSize(nil, obj); err != nil {
		return err
	}
	return l.createObject(ctx, by, obj)
}

// DryRunCreateStamped creates a stamped object in a dry run, and returns the member's result.
func (l *MemberWriter) DryRunCreateStamped(ctx context.Context, by Actor, obj client.Object) error {
	if err := l.checkStamped(obj); err != nil {
		return err
	}
	if err := l.guard.CheckFenceHeld(); err != nil {
		return err
	}
	return CountWrite(l.cluster, l.side, "try_create", obj, l.client.Create(ctx, obj, by.fieldOwner(), client.DryRunAll))
}

// PatchStamped changes a stamped object from before to after. Use PatchLeafVolume to change a PV, and
// PatchContent to change a content.
func (l *MemberWriter) PatchStamped(ctx context.Context, by Actor, before, after client.Object) error {
	switch before.(type) {
	case *corev1.PersistentVolume, *snapshotv1.VolumeSnapshotContent:
		return newForeignError(before, "a volume or snapshot content must be changed with PatchVolume or PatchContent")
	}
	if err := l.checkStamped(before); err != nil {
		return err
	}
	if err := checkLeafSize(before, after); err != nil {
		return err
	}
	return l.patchObject(ctx, by, before, after)
}

// AddEphemeralContainers adds the ephemeral containers of after to a stamped Pod.
func (l *MemberWriter) AddEphemeralContainers(ctx context.Context, by Actor, before, after *corev1.Pod) error {
	return l.patchPodSubresource(ctx, by, "ephemeralcontainers", before, after)
}

// ResizePod changes the resources of a stamped Pod to those of after, which it replaces by the member's response.
func (l *MemberWriter) ResizePod(ctx context.Context, by Actor, before, after *corev1.Pod) error {
	return l.patchPodSubresource(ctx, by, "resize", before, after)
}

func (l *MemberWriter) patchPodSubresource(ctx context.Context, by Actor, subresource string, before, after *corev1.Pod) error {
	if err := l.checkStamped(before); err != nil {
		return err
	}
	if err := checkLeafSize(before, after); err != nil {
		return err
	}
	return l.sendPatch(ctx, "patch_"+subresource, before, after, func() error {
		return l.client.SubResource(subresource).Patch(ctx, after, ConditionalPatch(before), by.fieldOwner())
	})
}

// DeleteStamped deletes a stamped object that holds no data. Use DeleteClaim and DestroyClaim to
// delete a claim, DeleteNamespace to delete a namespace, and DeleteSnapshot, DestroySnapshot and
// DestroyLeafContent to delete a snapshot's objects. No method deletes a PV.
func (l *MemberWriter) DeleteStamped(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	if err := l.checkStamped(obj); err != nil {
		return err
	}
	switch obj.(type) {
	case *corev1.PersistentVolumeClaim, *corev1.PersistentVolume, *snapshotv1.VolumeSnapshot, *snapshotv1.VolumeSnapshotContent, *corev1.Namespace:
		return fmt.Errorf("delete %T %s without evidence: %w", obj, client.ObjectKeyFromObject(obj), proof.ErrUnproven)
	}
	return l.deleteObject(ctx, obj, opts...)
}

// DeleteNamespace deletes a stamped namespace if the evidence covers it and destruction is allowed.
func (l *MemberWriter) DeleteNamespace(ctx context.Context, namespace *corev1.Namespace, evidence proof.Evidence) error {
	if err := l.checkDestructiveWrite(ctx, evidence, proof.DeleteNamespace, namespace); err != nil {
		return err
	}
	return l.deleteObject(ctx, namespace)
}

// DeleteClaim deletes a stamped claim whose data is kept, if the claim is unchanged, the evidence covers
// it and destruction is allowed. The claim may have been bound since it was read.
func (l *MemberWriter) DeleteClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim, evidence proof.DataKeepingEvidence) error {
	if err := l.checkDestructiveWrite(ctx, evidence, proof.DeleteClaim, claim); err != nil {
		return err
	}
	return l.deleteObject(ctx, claim, IfUnchanged(claim))
}

// DestroyClaim deletes a stamped claim, and its volume if the volume has policy Delete, if the evidence
// covers it, nobody needs the data, and destruction is allowed. A claim whose volume was never mirrored
// must also be unchanged, because it may have been bound to another volume since it was read.
func (l *MemberWriter) DestroyClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim, nobody proof.DataUnneeded, evidence proof.DataDestroyingEvidence) error {
	if err := l.checkDestructiveWrite(ctx, proof.DestructionEvidence(nobody, evidence), proof.DeleteClaim, claim); err != nil {
		return err
	}
	if _, unmirrored := evidence.(proof.UnmirroredVolume); unmirrored {
		return l.deleteObject(ctx, claim, IfUnchanged(claim))
	}
	return l.deleteObject(ctx, claim)
}

// SetVolumePolicyDelete sets the reclaim policy of a stamped PV to Delete, if the evidence covers it, nobody needs
// the data, and destruction is allowed. It returns the PV as the member then had it.
func (l *MemberWriter) SetVolumePolicyDelete(ctx context.Context, by Actor, volume *corev1.PersistentVolume, nobody proof.DataUnneeded, evidence proof.DataDestroyingEvidence) (*corev1.PersistentVolume, error) {
	if err := l.checkDestructiveWrite(ctx, proof.DestructionEvidence(nobody, evidence), proof.SetDelete, volume); err != nil {
		return nil, err
	}
	after := volume.DeepCopy()
	after.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	return after, l.patchObject(ctx, by, volume, after)
}

func (l *MemberWriter) checkDestructiveWrite(ctx context.Context, evidence proof.Evidence, action proof.Action, obj client.Object) error {
	if err := l.checkStamped(obj); err != nil {
		return err
	}
	if err := checkEvidence(evidence, action, obj); err != nil {
		return err
	}
	return l.checkDestructionAllowed(ctx)
}

func checkEvidence(evidence proof.Evidence, action proof.Action, obj client.Object) error {
	if evidence == nil {
		return fmt.Errorf("%T %s: %w", obj, client.ObjectKeyFromObject(obj), proof.ErrUnproven)
	}
	return proof.SpendEvidence(evidence, action, obj)
}

// RequestToken requests a ServiceAccount token and stores it in review. It changes nothing in the
// member.
func (l *MemberWriter) RequestToken(ctx context.Context, by Actor, account *corev1.ServiceAccount, review *authenticationv1.TokenRequest) error {
	if err := l.guard.CheckFenceHeld(); err != nil {
		return err
	}
	return CountWrite(l.cluster, l.side, "create_token", account, l.client.SubResource("token").Create(ctx, account, review, by.fieldOwner()))
}

// checkDestructionAllowed is called immediately before a destructive write, so that it checks the host after the
// live reads on which the write depends.
func (l *MemberWriter) checkDestructionAllowed(ctx context.Context) error {
	if err := l.guard.CheckNotSuspended(); err != nil {
		return err
	}
	return l.guard.CheckHostCurrent(ctx)
}

// PatchLeafVolume changes a leaf PV that has this host's stamp, or is bound to the given leaf claim
// with matching UIDs. Only SetVolumePolicyDelete can set its policy to Delete.
func (l *MemberWriter) PatchLeafVolume(ctx context.Context, by Actor, before, after *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) error {
	if l.checkStamped(before) != nil && !l.claimHoldsVolume(claim, before) {
		return newForeignError(before, "neither the volume nor its claim has Xylem's stamp")
	}
	if after.Spec.PersistentVolumeReclaimPolicy != before.Spec.PersistentVolumeReclaimPolicy &&
		after.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		return fmt.Errorf("set volume %s to Delete without evidence: %w", before.Name, proof.ErrUnproven)
	}
	return l.patchObject(ctx, by, before, after)
}

// StampImportedVolume stamps the leaf PV that an admin's host PV represents, and sets it to Retain. The
// member's admin must have consented, and the PV must not be in use by a claim. As with every
// patch, the resourceVersion proves that the PV is unchanged.
func (l *MemberWriter) StampImportedVolume(ctx context.Context, by Actor, before, after, host *corev1.PersistentVolume) error {
	_, leaf, uid, ours := hostpv.LeafOfHostVolume(host)
	origin, stamped := mirror.LeafOriginFromHost(l.hostID, before)
	switch {
	case !ours || !hostpv.IsImportedVolume(host) || leaf != before.Name || uid != before.UID:
		return newForeignError(before, "no host PV created by an admin represents it")
	case !hostpv.ConsentsToAdoption(before, l.hostID):
		return newForeignError(before, "the member's admin did not hand it over to this host")
	case stamped && origin.Root.Namespace != "":
		return newForeignError(before, "it is stamped for a claim")
	case before.Status.Phase != corev1.VolumeAvailable && before.Status.Phase != corev1.VolumeReleased || before.DeletionTimestamp != nil:
		return newForeignError(before, "it is in use")
	case after.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain:
		return newForeignError(before, "the change does not set its policy to Retain")
	}
	return l.patchObject(ctx, by, before, after)
}

func (l *MemberWriter) claimHoldsVolume(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) bool {
	return claim != nil && l.checkStamped(claim) == nil && claim.Spec.VolumeName == volume.Name && hostpv.ClaimRefHasUIDOf(volume, claim)
}

func (l *MemberWriter) checkStamped(obj client.Object) error {
	if _, ours := mirror.LeafOriginFromHost(l.hostID, obj); ours {
		return nil
	}
	// A namespace's stamp consists only of labels, because a namespace has no root. The fence's
	// Lease is written by internal/member, not by this package.
	if labels := obj.GetLabels(); isNamespace(obj) && labels[v1alpha1.LabelHost] == l.hostID &&
		labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByValue {
		return nil
	}
	return newForeignError(obj, "it lacks the stamp of this host")
}

// checkLeafSize returns an error, like that of an API server, if a write makes a leaf so large that a few of them
// would exceed the limits of the member's responses and caches. Tenants choose the contents of leaves.
func checkLeafSize(before, after client.Object) error {
	if !mirror.IsLeafTooLarge(after) || before != nil && weigh.WeighObject(after) <= weigh.WeighObject(before) {
		return nil
	}
	return apierrors.NewRequestEntityTooLargeError("the object would take more than " + mirror.LeafSizeLimitText + " of the manager's memory, because it has too many parts")
}

func isNamespace(obj client.Object) bool {
	_, namespace := obj.(*corev1.Namespace)
	return namespace
}

// GracePeriodOption returns the delete option for a Pod's grace period in seconds.
func GracePeriodOption(seconds *int64) client.DeleteOption {
	return client.GracePeriodSeconds(ptr.Deref(seconds, corev1.DefaultTerminationGracePeriodSeconds))
}
