package move

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/move/objects"
)

// copyAndCompare copies the data to a new disk, and compares the two disks. It does not change the
// claim or its disk.
func (r *run) copyAndCompare(ctx context.Context) error {
	old, err := r.undoBeforeCopy(ctx)
	if err != nil {
		return err
	}
	if err := objects.ProveUnused(ctx, r.host, r.ID, r.Claim.Name, r.Copy); err != nil {
		return err
	}
	if err := objects.DeleteMovers(ctx, r.host, r.ID); err != nil {
		return err
	}
	if err := r.ensureCopy(ctx, old); err != nil {
		return err
	}
	for _, role := range []objects.Role{objects.Reader, objects.Writer} {
		if err := r.startMovers(ctx, role); err != nil {
			return err
		}
	}
	copied, err := r.storage.CopyDisk(ctx, r.Record)
	if err != nil {
		return errors.Join(err, r.storage.KeepExisting(ctx, r.Record))
	}
	r.New = copied
	// The Pods run only if the manager is connected, so it has now detected a restore of the host.
	if err := r.unrestored(ctx); err != nil {
		return err
	}
	if err := r.transferData(ctx); err != nil {
		return err
	}
	if err := r.compareDisks(ctx); err != nil {
		return err
	}
	if err := r.copyIsReady(ctx); err != nil {
		return err
	}
	return r.enterPhase(ctx, objects.Swapping)
}

// undoBeforeCopy checks that the claim still has its disk, and returns its volume.
func (r *run) undoBeforeCopy(ctx context.Context) (*corev1.PersistentVolume, error) {
	claim, err := r.host.ReadClaim(ctx, r.Claim.Name)
	if err != nil {
		return nil, err
	}
	if claim == nil || claim.UID != r.ClaimUID || claim.DeletionTimestamp != nil || claim.Status.Phase != corev1.ClaimBound {
		return nil, fmt.Errorf("claim %q was deleted, or is no longer bound to volume %q. Run this command with --undo to discard the move", r.Claim.Name, r.Old.Name)
	}
	return r.storage.Volume(ctx, r.Old)
}

// copyIsReady checks the prerequisites again, just before the command changes the claim.
func (r *run) copyIsReady(ctx context.Context) error {
	if err := objects.ProveUnused(ctx, r.host, r.ID, r.Claim.Name, r.Copy); err != nil {
		return err
	}
	if _, err := r.undoBeforeCopy(ctx); err != nil {
		return err
	}
	for _, where := range []objects.Place{r.From, r.To} {
		if _, err := virtualNodeOf(ctx, r.host, where); err != nil {
			return err
		}
	}
	return r.copyIsSound(ctx)
}

// copyIsSound checks that the second claim is still bound to the volume that was compared.
func (r *run) copyIsSound(ctx context.Context) error {
	copied, err := r.storage.CopyDisk(ctx, r.Record)
	if err == nil && copied.UID != r.New.UID {
		err = objects.CopyLostError(fmt.Sprintf("claim %q (the copy) is now bound to another volume", r.Copy))
	}
	return err
}

// ensureCopy creates the second claim. If the second claim has lost its volume, or was deleted,
// ensureCopy abandons its volume and creates another claim.
func (r *run) ensureCopy(ctx context.Context, old *corev1.PersistentVolume) error {
	existing, err := r.host.ReadClaim(ctx, r.Copy)
	if err != nil {
		return err
	}
	why := objects.LostVolumeMessage(existing)
	if existing == nil && r.New.UID != "" { // an earlier attempt to swap may have set policy Retain
		why = "its claim was deleted"
	}
	if why != "" {
		r.host.ReportLine("The copy was lost (%s). Creating another copy", why)
		if err := r.deleteCopyClaim(ctx); err != nil {
			return err
		}
		existing = nil
	}
	if err := r.storage.DeleteCopies(ctx, r.Record, r.Copy); err != nil {
		return err
	}
	if existing == nil {
		if err := r.host.Create(ctx, r.CopyClaim(old), command.FieldOwner); err != nil {
			return r.host.ExplainHostError(fmt.Errorf("create claim %q: %w", r.Copy, err))
		}
	}
	return nil
}

// deleteCopyClaim abandons the second claim, and chooses the name of its successor.
func (r *run) deleteCopyClaim(ctx context.Context) error {
	pv, err := r.storage.FindVolume(ctx, r.New)
	if err != nil {
		return err
	}
	if pv != nil {
		if err := r.storage.RestoreCopy(ctx, r.Record, r.New); err != nil {
			return err
		}
	}
	r.Copy, r.New = objects.NameForMove(r.Claim.Name, objects.NewMoveID()), objects.Disk{}
	return r.saveRecord(ctx)
}

// startMovers creates a Pod of this run, and waits until it runs.
func (r *run) startMovers(ctx context.Context, role objects.Role) error {
	pod, err := r.moverPod(ctx, role)
	if err != nil {
		return err
	}
	return objects.StartMover(ctx, r.host, pod, role.PlaceOfRole(r.Record))
}

// moverPod returns a Pod of this run. The Pod tolerates the taints of the member's virtual node.
func (r *run) moverPod(ctx context.Context, role objects.Role) (*corev1.Pod, error) {
	node, err := virtualNodeOf(ctx, r.host, role.PlaceOfRole(r.Record))
	if err != nil {
		return nil, err
	}
	return objects.MoverPod(r.Record, role, r.opts.Image, node.Spec.Taints), nil
}
