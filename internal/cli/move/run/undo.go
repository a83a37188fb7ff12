package run

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/move/host"
	"github.com/xylem-io/xylem/internal/cli/move/mover"
	"github.com/xylem-io/xylem/internal/cli/move/plan"
	"github.com/xylem-io/xylem/internal/cli/move/record"
	"github.com/xylem-io/xylem/internal/cli/move/storage"
)

// Undo switches a claim back to its old disk.
func Undo(ctx context.Context, h *host.Client, opts Options, claim string) error {
	r := newRun(h, opts, claim)
	stored, err := r.store.Read(ctx)
	if err != nil {
		return err
	}
	if stored == nil {
		return plan.NothingToDo{Err: fmt.Errorf("no move of claim %q is recorded in namespace %q, so there is nothing to undo", claim, h.Namespace)}
	}
	r.Record = stored
	if _, err := r.storage.Volume(ctx, r.Old); err != nil {
		return err
	}
	if r.Used { // otherwise, the claim still has its old disk, and Pods can use it
		if err := storage.Unused(ctx, h, r.ID, claim); err != nil {
			return err
		}
	}
	h.Report("Undo the move of claim %q to member %q: switch the claim back to volume %q in member %q", claim, r.To.Registration, r.Old.Name, r.From.Registration)
	if r.Used {
		h.Report("The copy, volume %q, is kept, because Pods may have written to it", r.New.Name)
	} else {
		h.Report("The copy is destroyed")
	}
	if opts.DryRun != command.DryRunNone {
		return opts.unchanged(h)
	}
	if err := opts.confirm(h, claim, "undo the move"); err != nil {
		return err
	}
	if err := r.undo(ctx); err != nil {
		return fmt.Errorf("%w\nThis command has written nothing to the disk in member %q. Run it again to continue", r.cause(ctx, err), r.From.Registration)
	}
	paint := h.Env.PaintOf(h.Env.Out)
	h.Report("%s: claim %q has its data in member %q", paint.Good("Undone"), claim, r.From.Registration)
	return nil
}

func (r *run) undo(ctx context.Context) error {
	r.Run = r.opts.ID
	if err := r.enter(ctx, record.Undoing); err != nil {
		return err
	}
	if err := r.restore(ctx); err != nil {
		return err
	}
	if err := r.storage.SetPolicy(ctx, r.Old, r.Old.Policy, record.NoMarks()); err != nil {
		return err
	}
	switch pv, err := r.storage.FindVolume(ctx, r.New); {
	case err != nil:
		return err
	case pv == nil: // no copy, or somebody deleted it
	case r.Used:
		if err := r.storage.SetPolicy(ctx, r.New, corev1.PersistentVolumeReclaimRetain, r.Marks(r.New)); err != nil {
			return err
		}
	default:
		if err := r.storage.SetPolicy(ctx, r.New, r.New.Policy, nil); err != nil {
			return err
		}
	}
	if err := r.storage.DeleteCopies(ctx, r.ID, ""); err != nil {
		return err
	}
	return r.store.Delete(ctx)
}

// restore binds the claim to its old disk, regardless of the move's progress.
func (r *run) restore(ctx context.Context) error {
	if err := mover.DeleteAll(ctx, r.host, r.ID); err != nil {
		return err
	}
	claim, err := r.host.Claim(ctx, r.Claim.Name)
	switch {
	case err != nil:
		return err
	case claim == nil:
	case claim.UID == r.ClaimUID && claim.DeletionTimestamp == nil:
		return r.storage.Touch(ctx, claim, r.Run)
	case claim.UID == r.ClaimUID:
		if err := r.storage.AwaitGone(ctx, r.ID, claim.Name, claim.UID); err != nil {
			return err
		}
	case r.Used && r.IsBoundTo(claim, r.New.Name):
		if err := r.detach(ctx, claim); err != nil {
			return err
		}
	}
	r.host.Report("Creating claim %q again, with its old disk", r.Claim.Name)
	uid, err := r.storage.Bind(ctx, r.Record, r.Old)
	if err != nil {
		return err
	}
	r.ClaimUID = uid
	return nil
}

// detach deletes the claim that is bound to the copy, and keeps the copy.
func (r *run) detach(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if err := storage.Unused(ctx, r.host, r.ID, claim.Name); err != nil {
		return err
	}
	if err := r.storage.SetPolicy(ctx, r.New, corev1.PersistentVolumeReclaimRetain, r.Marks(r.New)); err != nil {
		return err
	}
	if err := r.storage.DeleteClaim(ctx, claim); err != nil {
		return err
	}
	return r.storage.AwaitGone(ctx, r.ID, claim.Name, claim.UID)
}
