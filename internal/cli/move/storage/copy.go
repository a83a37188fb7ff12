package storage

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/move/record"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/report"
)

// CopyLostError reports that the copy cannot be used, so it must be created again.
type CopyLostError string

func (e CopyLostError) Error() string { return string(e) }

func copyLost(format string, args ...any) error { return CopyLostError(fmt.Sprintf(format, args...)) }

// CopyDisk returns the volume of the second claim. It returns a CopyLostError if the volume is lost,
// or not in the right member.
func (w *Writer) CopyDisk(ctx context.Context, r *record.Record) (record.Disk, error) {
	claim, err := w.host.Claim(ctx, r.Copy)
	switch {
	case err != nil:
		return record.Disk{}, err
	case claim == nil || claim.Status.Phase != corev1.ClaimBound:
		return record.Disk{}, copyLost("claim %q (the copy) does not exist or is not bound", r.Copy)
	case Lost(claim) != "":
		return record.Disk{}, copyLost("the copy in member %q was lost: %s", r.To.Registration, Lost(claim))
	}
	pv, err := w.host.VolumeOf(ctx, claim)
	if err != nil {
		return record.Disk{}, err
	}
	if pv == nil {
		return record.Disk{}, copyLost("claim %q (the copy) has lost its volume %q", r.Copy, claim.Spec.VolumeName)
	}
	if clusterID, _, _, ours := hostpv.LeafOf(pv); !ours || clusterID != r.To.ClusterID {
		return record.Disk{}, copyLost("volume %q of claim %q is not in member %q", pv.Name, r.Copy, r.To.Registration)
	}
	return record.DiskOf(pv), nil
}

// Lost returns the reason why a claim is no longer usable, or "".
func Lost(claim *corev1.PersistentVolumeClaim) string {
	switch {
	case claim == nil:
		return ""
	case claim.DeletionTimestamp != nil:
		return "its claim is being deleted"
	case claim.Status.Phase == corev1.ClaimLost:
		return "its claim has lost its volume"
	}
	if problem := report.ClaimProblem(claim, v1alpha1.ClaimPlaced); problem != nil && claim.Spec.VolumeName != "" {
		return problem.Message
	}
	return ""
}
