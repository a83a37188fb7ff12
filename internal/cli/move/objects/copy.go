package objects

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/report"
)

// CopyLostError reports that the copy cannot be used, so it must be created again.
type CopyLostError string

func (e CopyLostError) Error() string { return string(e) }

func copyLostError(format string, args ...any) error {
	return CopyLostError(fmt.Sprintf(format, args...))
}

// CopyDisk returns the volume of the second claim. It returns a CopyLostError if the volume is lost,
// or not in the right member, and another error if the volume was not provisioned for this claim,
// because the copy would overwrite its data.
func (w *ObjectWriter) CopyDisk(ctx context.Context, r *Record) (Disk, error) {
	claim, err := w.host.ReadClaim(ctx, r.Copy)
	switch {
	case err != nil:
		return Disk{}, err
	case claim == nil || claim.Status.Phase != corev1.ClaimBound:
		return Disk{}, copyLostError("claim %q (the copy) does not exist or is not bound", r.Copy)
	case LostVolumeMessage(claim) != "":
		return Disk{}, copyLostError("the copy in member %q was lost: %s", r.To.Registration, LostVolumeMessage(claim))
	}
	pv, err := w.host.ReadVolumeOf(ctx, claim)
	if err != nil {
		return Disk{}, err
	}
	if pv == nil {
		return Disk{}, copyLostError("claim %q (the copy) has lost its volume %q", r.Copy, claim.Spec.VolumeName)
	}
	if clusterID, _, _, ours := hostpv.LeafOfHostVolume(pv); !ours || clusterID != r.To.ClusterID {
		return Disk{}, copyLostError("volume %q of claim %q is not in member %q", pv.Name, r.Copy, r.To.Registration)
	}
	if !hostpv.WasProvisionedFor(pv, claim) {
		return Disk{}, fmt.Errorf("claim %q (the copy) is bound to volume %q, which was not provisioned for that claim and may have other data, so this command does not write to it. "+
			"Run this command with --undo, which keeps the volume. Then make sure that no PersistentVolume of the class is Available in member %q, or upgrade Xylem if it is older than this plugin, and move the claim again",
			claim.Name, pv.Name, r.To.Registration)
	}
	return DiskOf(pv), nil
}

// KeepExisting sets policy Retain on the volumes of the second claims that were not provisioned for
// them, so that nobody destroys their data by deleting a claim of the move.
func (w *ObjectWriter) KeepExisting(ctx context.Context, r *Record) error {
	claims, err := w.copies(ctx, r.ID)
	if err != nil {
		return err
	}
	var errs []error
	for i := range claims {
		errs = append(errs, w.keepExisting(ctx, r, &claims[i]))
	}
	return errors.Join(errs...)
}

// keepExisting does this for one claim. The volume gets no annotations of the move, so no command
// restores its policy or destroys it later.
func (w *ObjectWriter) keepExisting(ctx context.Context, r *Record, claim *corev1.PersistentVolumeClaim) error {
	pv, err := w.host.ReadVolumeOf(ctx, claim)
	if err != nil || pv == nil || pv.UID == r.New.UID || hostpv.WasProvisionedFor(pv, claim) {
		return err
	}
	w.host.ReportLine("Volume %q, which was not provisioned for claim %q, is kept with policy Retain. When the claim is gone, other claims can use the volume if you remove its spec.claimRef", pv.Name, claim.Name)
	return w.patchVolume(ctx, DiskOf(pv), "keep its data", func(pv *corev1.PersistentVolume) error {
		pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		return nil
	})
}

// LostVolumeMessage returns the reason why a claim is no longer usable, or "".
func LostVolumeMessage(claim *corev1.PersistentVolumeClaim) string {
	switch {
	case claim == nil:
		return ""
	case claim.DeletionTimestamp != nil:
		return "its claim is being deleted"
	case claim.Status.Phase == corev1.ClaimLost:
		return "its claim has lost its volume"
	}
	if problem := report.ClaimConditionProblem(claim, v1alpha1.ClaimPlaced); problem != nil && claim.Spec.VolumeName != "" {
		return problem.Message
	}
	return ""
}
