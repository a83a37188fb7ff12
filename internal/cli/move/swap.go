package move

import (
	"context"
	"errors"
	"fmt"

	"github.com/xylem-io/xylem/internal/cli/move/objects"
)

// seal deletes the claim, and compares its disk once more while the command's own Pod keeps the
// claim from disappearing. No other Pod can begin to use a claim that is being deleted.
func (r *run) seal(ctx context.Context) error {
	err := r.sound(ctx)
	if lost := objects.CopyLostError(""); errors.As(err, &lost) {
		return r.restart(ctx, lost.Error())
	}
	if err != nil {
		return err
	}
	if err := r.retain(ctx); err != nil {
		return err
	}
	claim, err := r.host.Claim(ctx, r.Claim.Name)
	if err != nil {
		return err
	}
	reader, err := objects.RunningMover(ctx, r.host, r.ID, r.Claim.Name)
	switch {
	case err != nil:
		return err
	case claim == nil || claim.UID != r.ClaimUID || reader == "":
		// The claim was deleted, or its Pod ended, before the disk was compared again.
		return r.restart(ctx, "the Pod that compares the old disk ended")
	case claim.DeletionTimestamp == nil:
		if err := r.ready(ctx); err != nil {
			return err
		}
		r.host.Report("Deleting claim %q. Its disk is kept", claim.Name)
		if err := r.storage.DeleteClaim(ctx, claim); err != nil {
			return err
		}
	}
	if err := objects.Unused(ctx, r.host, r.ID, r.Claim.Name); err != nil {
		return err
	}
	r.host.Report("Comparing the old disk again")
	sum, err := r.sumOf(ctx, reader, r.From)
	if err != nil {
		return err
	}
	if err := objects.Unused(ctx, r.host, r.ID, r.Claim.Name); err != nil {
		return err
	}
	if sum != r.Sum {
		return errors.Join(r.restart(ctx, "somebody wrote to the disk after it was compared"),
			fmt.Errorf("somebody wrote to the disk in member %q after it was compared, so the copy is out of date. Claim %q is bound to its old disk again", r.From.Registration, r.Claim.Name))
	}
	return r.enter(ctx, objects.Sealed)
}

// restart binds the claim to its old disk again, to copy and compare the disk once more.
func (r *run) restart(ctx context.Context, why string) error {
	r.host.Report("The data must be copied again: %s", why)
	if err := r.restore(ctx); err != nil {
		return err
	}
	r.Sum = ""
	return r.enter(ctx, objects.Copying)
}

// retain sets the reclaim policy of both volumes to Retain, and annotates the old volume.
func (r *run) retain(ctx context.Context) error {
	if err := r.storage.Retain(ctx, r.Record, r.New, nil); err != nil {
		return err
	}
	return r.storage.Retain(ctx, r.Record, r.Old, r.Marks(r.Old))
}

// release deletes the Pods and the second claim, and waits until neither claim exists.
func (r *run) release(ctx context.Context) error {
	if err := r.retain(ctx); err != nil { // somebody may have changed a policy in the meantime
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
	copied, err := r.host.Claim(ctx, r.Copy)
	if err != nil {
		return err
	}
	if copied != nil {
		if err := r.storage.AwaitGone(ctx, r.ID, r.Copy, copied.UID); err != nil {
			return err
		}
	}
	r.Used = true
	return r.enter(ctx, objects.Rebinding)
}

// rebind creates the claim again, bound to the copy.
func (r *run) rebind(ctx context.Context) error {
	r.host.Report("Creating claim %q again, bound to the disk in member %q", r.Claim.Name, r.To.Registration)
	uid, err := r.storage.Bind(ctx, r.Record, r.New)
	if err != nil {
		return err
	}
	if err := r.storage.RestoreBound(ctx, r.Record, r.New, uid); err != nil {
		return err
	}
	return r.enter(ctx, objects.Done)
}
