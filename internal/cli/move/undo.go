package move

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/move/objects"
)

// UndoMove switches a claim back to its old disk.
func UndoMove(ctx context.Context, h *objects.Client, opts Options, claim string) error {
	r := newRun(h, opts, claim)
	stored, err := r.store.Read(ctx)
	if err != nil {
		return err
	}
	if stored == nil {
		return NothingToDo{Err: fmt.Errorf("no move of claim %q is recorded in namespace %q, so there is nothing to undo", claim, h.Namespace)}
	}
	r.Record = stored
	if err := r.storage.ProveManifest(ctx, r.Record); err != nil {
		return err
	}
	gone, err := r.discarded(ctx)
	if err != nil {
		return err
	}
	restored, err := Restored(ctx, h, r.From, r.To)
	if err != nil {
		return err
	}
	if r.Used { // otherwise, the claim is still bound to its old disk, and Pods can use it
		if err := objects.ProveUnused(ctx, h, r.ID, claim); err != nil {
			return err
		}
	}
	if gone {
		h.ReportLine("Discard the move of claim %q to member %q: its old disk, volume %q, was deleted in the host", claim, r.To.Registration, r.Old.Name)
	} else {
		h.ReportLine("Undo the move of claim %q to member %q: switch the claim back to volume %q in member %q", claim, r.To.Registration, r.Old.Name, r.From.Registration)
	}
	switch {
	case gone:
		h.ReportLine("If there is a copy, it will be kept until you run this command with --delete-source")
	case r.Used:
		h.ReportLine("The copy, volume %q, will be kept, because Pods may have written to it", r.New.Name)
	case restored:
		h.ReportLine("The copy will be kept, because it may have newer data: the host or a member was restored from a backup after the move began")
	default:
		h.ReportLine("The copy will be destroyed")
	}
	if opts.DryRun != command.DryRunNone {
		return opts.Unchanged(h)
	}
	if err := opts.Confirm(h, claim, "undo the move"); err != nil {
		return err
	}
	if err := r.undoMove(ctx, gone); err != nil {
		return fmt.Errorf("%w\nThis command has written nothing to the disk in member %q. Run the command again to continue", r.causeOfFailure(ctx, err), r.From.Registration)
	}
	paint := h.Env.PaintOf(h.Env.Out)
	if gone {
		h.ReportLine("%s: no move of claim %q is in progress", paint.PaintGood("Discarded"), claim)
		return nil
	}
	h.ReportLine("%s: claim %q is bound to its old disk in member %q", paint.PaintGood("Undone"), claim, r.From.Registration)
	return nil
}

// discarded reports whether the old disk no longer exists in the host, although no claim was bound to
// the copy. The user then deleted the claim during the move, so an undo can only remove the rest of
// the move.
func (r *run) discarded(ctx context.Context) (bool, error) {
	_, err := r.storage.Volume(ctx, r.Old)
	if gone := objects.VolumeGoneError(""); errors.As(err, &gone) && !r.Used {
		return true, nil
	}
	return false, err
}

// undoMove binds the claim to its old disk, unless the disk is gone, and keeps or destroys the copies.
func (r *run) undoMove(ctx context.Context, gone bool) error {
	r.Run = r.opts.ID
	if err := r.enterPhase(ctx, objects.Undoing); err != nil {
		return err
	}
	if gone {
		if err := objects.DeleteMovers(ctx, r.host, r.ID); err != nil {
			return err
		}
	} else {
		if err := r.restoreClaim(ctx); err != nil {
			return err
		}
		if err := r.storage.RestoreBound(ctx, r.Record, r.Old, r.ClaimUID); err != nil {
			return err
		}
	}
	if err := r.settleCopies(ctx, gone); err != nil {
		return err
	}
	if err := r.storage.DeleteCopies(ctx, r.Record, ""); err != nil {
		return err
	}
	return r.store.Delete(ctx)
}

// settleCopies sets the reclaim policy of the copies: Retain if the old disk is gone or may have older
// data, otherwise the policy that they had before the move.
func (r *run) settleCopies(ctx context.Context, gone bool) error {
	restored, err := Restored(ctx, r.host, r.From, r.To)
	if err != nil {
		return err
	}
	copies, err := r.storage.Copies(ctx, r.Record)
	if err != nil {
		return err
	}
	for _, disk := range copies {
		if r.Used || restored || gone {
			err = r.storage.Retain(ctx, r.Record, disk, r.Marks(disk))
		} else {
			err = r.storage.RestoreCopy(ctx, r.Record, disk)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// restoreClaim binds the claim to its old disk, regardless of the move's progress.
func (r *run) restoreClaim(ctx context.Context) error {
	claim, err := r.host.ReadClaim(ctx, r.Claim.Name)
	if err != nil {
		return err
	}
	if claim != nil && claim.UID == r.ClaimUID && claim.DeletionTimestamp != nil {
		// Only a Pod of the move may keep the claim from disappearing, and its disk with it.
		if err := r.storage.Retain(ctx, r.Record, r.Old, r.Marks(r.Old)); err != nil {
			return err
		}
	}
	if err := objects.DeleteMovers(ctx, r.host, r.ID); err != nil {
		return err
	}
	if claim, err = r.host.ReadClaim(ctx, r.Claim.Name); err != nil {
		return err
	}
	bound, err := r.storage.IsBound(ctx, claim, r.Old)
	switch {
	case err != nil:
		return err
	case claim == nil:
	case bound, claim.UID == r.ClaimUID && claim.DeletionTimestamp == nil:
		r.ClaimUID = claim.UID
		return r.storage.TouchClaim(ctx, claim, r.Run)
	case claim.UID == r.ClaimUID:
		if err := r.storage.AwaitGone(ctx, r.ID, claim.Name, claim.UID); err != nil {
			return err
		}
	case r.Used && r.IsBoundTo(claim, r.New.Name):
		if err := r.detachDisk(ctx, claim); err != nil {
			return err
		}
	}
	r.host.ReportLine("Creating claim %q again, bound to its old disk", r.Claim.Name)
	uid, err := r.storage.BindClaim(ctx, r.Record, r.Old)
	if err != nil {
		return err
	}
	r.ClaimUID = uid
	return nil
}

// detachDisk deletes the claim that is bound to the copy, and keeps the copy.
func (r *run) detachDisk(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if err := objects.ProveUnused(ctx, r.host, r.ID, claim.Name); err != nil {
		return err
	}
	if err := r.storage.Retain(ctx, r.Record, r.New, r.Marks(r.New)); err != nil {
		return err
	}
	if err := r.storage.DeleteClaim(ctx, claim); err != nil {
		return err
	}
	return r.storage.AwaitGone(ctx, r.ID, claim.Name, claim.UID)
}
