package move

import (
	"context"
	"errors"
	"fmt"

	"github.com/xylem-io/xylem/internal/cli/move/objects"
)

// compareAgain deletes the claim, and compares its disk once more while the command's own Pod keeps the
// claim from disappearing. No other Pod can begin to use a claim that is being deleted.
func (r *run) compareAgain(ctx context.Context) error {
	err := r.copyIsSound(ctx)
	if lost := objects.CopyLostError(""); errors.As(err, &lost) {
		return r.restartInterrupted(ctx, lost.Error())
	}
	if err != nil {
		return err
	}
	if err := r.retainDisks(ctx); err != nil {
		return err
	}
	claim, err := r.host.ReadClaim(ctx, r.Claim.Name)
	if err != nil {
		return err
	}
	reader, err := objects.RunningMover(ctx, r.host, r.ID, r.Claim.Name)
	switch {
	case err != nil:
		return err
	case claim == nil || claim.UID != r.ClaimUID || reader == "":
		// The claim was deleted, or its Pod ended, before the disk was compared again.
		return r.restartInterrupted(ctx, "the Pod that compares the old disk ended")
	case claim.DeletionTimestamp == nil:
		if err := r.copyIsReady(ctx); err != nil {
			return err
		}
		r.host.ReportLine("Deleting claim %q. Its disk is kept", claim.Name)
		if err := r.storage.DeleteClaim(ctx, claim); err != nil {
			return err
		}
	}
	if err := objects.ProveUnused(ctx, r.host, r.ID, r.Claim.Name); err != nil {
		return err
	}
	r.host.ReportLine("Comparing the old disk again")
	sum, err := r.checksumOf(ctx, reader, r.From)
	if err != nil {
		return err
	}
	if err := objects.ProveUnused(ctx, r.host, r.ID, r.Claim.Name); err != nil {
		return err
	}
	if sum != r.Sum {
		return errors.Join(r.restartInterrupted(ctx, "somebody wrote to the disk after it was compared"),
			fmt.Errorf("somebody wrote to the disk in member %q after it was compared, so the copy is out of date. Claim %q is bound to its old disk again", r.From.Registration, r.Claim.Name))
	}
	return r.enterPhase(ctx, objects.Sealed)
}

// restartInterrupted binds the claim to its old disk again, to copy and compare the disk once more.
func (r *run) restartInterrupted(ctx context.Context, why string) error {
	r.host.ReportLine("The data must be copied again: %s", why)
	if err := r.restoreClaim(ctx); err != nil {
		return err
	}
	r.Sum = ""
	return r.enterPhase(ctx, objects.Copying)
}

// retainDisks sets the reclaim policy of both volumes to Retain, and annotates the old volume.
func (r *run) retainDisks(ctx context.Context) error {
	if err := r.storage.Retain(ctx, r.Record, r.New, nil); err != nil {
		return err
	}
	return r.storage.Retain(ctx, r.Record, r.Old, r.Marks(r.Old))
}

// releaseMovers deletes the Pods and the second claim, and waits until neither claim exists.
func (r *run) releaseMovers(ctx context.Context) error {
	if err := r.retainDisks(ctx); err != nil { // somebody may have changed a policy in the meantime
		return err
	}
	if err := objects.DeleteMovers(ctx, r.host, r.ID); err != nil {
		return err
	}
	if err := r.storage.AwaitGone(ctx, r.ID, r.Claim.Name, r.ClaimUID); err != nil {
		return err
	}
	if err := r.storage.DeleteCopies(ctx, r.Record, ""); err != nil {
		return err
	}
	copied, err := r.host.ReadClaim(ctx, r.Copy)
	if err != nil {
		return err
	}
	if copied != nil {
		if err := r.storage.AwaitGone(ctx, r.ID, r.Copy, copied.UID); err != nil {
			return err
		}
	}
	r.Used = true
	return r.enterPhase(ctx, objects.Rebinding)
}

// rebindClaim creates the claim again, bound to the copy.
func (r *run) rebindClaim(ctx context.Context) error {
	r.host.ReportLine("Creating claim %q again, bound to the disk in member %q", r.Claim.Name, r.To.Registration)
	uid, err := r.storage.BindClaim(ctx, r.Record, r.New)
	if err != nil {
		return err
	}
	if err := r.storage.RestoreBound(ctx, r.Record, r.New, uid); err != nil {
		return err
	}
	return r.enterPhase(ctx, objects.Done)
}
