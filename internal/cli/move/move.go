package move

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/move/objects"
	"github.com/xylem-io/xylem/internal/cli/move/transfer"
)

// Options are the flags that all moves of one run share.
type Options struct {
	// To is the registration name of the member to move the data to.
	To string
	// Image is the image of the two Pods.
	Image string
	// DryRun is the value of --dry-run.
	DryRun command.DryRun
	// Yes skips the prompt for confirmation.
	Yes bool
	// ID is the ID of the run.
	ID string
	// Shell runs scripts in the two Pods.
	Shell Shell
}

// Shell copies and compares the content of volumes, in the Pods that mount them. transfer.Shell
// implements it.
type Shell interface {
	Copy(ctx context.Context, from, to transfer.End, content transfer.Content, count func(int)) error
	Sum(ctx context.Context, pod string, content transfer.Content) (string, error)
	UsedBytes(ctx context.Context, pod string) (int64, error)
	DeviceBytes(ctx context.Context, pod string) (int64, error)
}

// Confirm prompts the user, unless Yes is set. purpose completes "to ...".
func (o Options) Confirm(h *objects.Client, claim, purpose string) error {
	if o.Yes {
		return nil
	}
	return h.Env.Confirm("claim", claim, purpose)
}

// Unchanged reports that a dry run changed nothing.
func (o Options) Unchanged(h *objects.Client) error {
	h.ReportLine("Nothing was changed (%s)", o.DryRun.DryRunSuffix())
	return nil
}

// run is the move of one claim.
type run struct {
	*objects.Record
	opts    Options
	host    *objects.Client
	store   *objects.Store
	storage *objects.ObjectWriter
}

func newRun(h *objects.Client, opts Options, claim string) *run {
	store := objects.NewStore(h, claim)
	return &run{opts: opts, host: h, store: store, storage: objects.NewObjectWriter(h, store, claim)}
}

// Move starts or continues the move of a claim.
func Move(ctx context.Context, h *objects.Client, opts Options, claim string) error {
	r := newRun(h, opts, claim)
	stored, err := r.store.Read(ctx)
	if err != nil {
		return err
	}
	switch {
	case stored != nil && stored.Phase == objects.Undoing:
		return fmt.Errorf("the move of claim %q is being undone. Run this command with --undo and without --to to finish the undo, then move the claim again", claim)
	case stored != nil && stored.Phase != objects.Done && stored.To.Registration != opts.To:
		return fmt.Errorf("a move of claim %q to member %q is in progress. Finish it with --to %s, or revert it with --undo", claim, stored.To.Registration, stored.To.Registration)
	case stored != nil && stored.Phase != objects.Done:
		r.Record = stored
		if err := r.unrestored(ctx); err != nil {
			return err
		}
		if err := r.storage.ProveManifest(ctx, r.Record); err != nil {
			return err
		}
	default:
		if moved, err := r.reportMoved(ctx, stored); err != nil || moved {
			return err
		}
		if r.Record, err = planMove(ctx, h, claim, opts.To); err != nil {
			return err
		}
	}
	r.printPlan()
	switch opts.DryRun {
	case command.DryRunClient:
		return opts.Unchanged(h)
	case command.DryRunServer:
		return r.validateMove(ctx)
	case command.DryRunNone:
	}
	if err := opts.Confirm(h, claim, "move the data"); err != nil {
		return err
	}
	return r.forward(ctx)
}

// unrestored returns an error if the record of the move may be older than the move's progress. The
// claim may then have been bound to the copy, so that the copy has the newest data.
func (r *run) unrestored(ctx context.Context) error {
	restored, err := Restored(ctx, r.host, r.From, r.To)
	if err == nil && restored {
		err = fmt.Errorf("the host or a member was restored from a backup, or a member was registered again, after the move of claim %q began, so the copy may have newer data than the disk. Run this command with --undo and without --to, which keeps both disks. Then compare their data, and move the claim again", r.Claim.Name)
	}
	return err
}

// forward runs the remaining steps. Each step starts from the current objects in the host.
func (r *run) forward(ctx context.Context) error {
	r.Run = r.opts.ID
	if err := r.saveRecord(ctx); err != nil {
		return r.causeOfFailure(ctx, err)
	}
	for r.Phase != objects.Done {
		var err error
		switch r.Phase {
		case objects.Copying:
			err = r.copyAndCompare(ctx)
		case objects.Swapping:
			err = r.compareAgain(ctx)
		case objects.Sealed:
			err = r.releaseMovers(ctx)
		case objects.Rebinding:
			err = r.rebindClaim(ctx)
		default:
			err = fmt.Errorf("the record has the unknown step %q. Use the plugin version that began the move", r.Phase)
		}
		if err != nil {
			return fmt.Errorf("%w\nThis command has written nothing to the disk in member %q. Run the command again to continue, or with --undo to revert the move", r.causeOfFailure(ctx, err), r.From.Registration)
		}
	}
	paint := r.host.Env.PaintOf(r.host.Env.Out)
	r.host.ReportLine("%s: the data of claim %q is now in member %q. The old disk in member %q, volume %q, is kept until you run `kubectl xylem move pvc %s --delete-source -n %s`; --undo reverts to the old disk",
		paint.PaintGood("Moved"), r.Claim.Name, r.To.Registration, r.From.Registration, r.Old.Name, r.Claim.Name, r.host.Namespace)
	return nil
}

// reportMoved reports whether an earlier run has already moved the claim to the member of --to.
func (r *run) reportMoved(ctx context.Context, stored *objects.Record) (bool, error) {
	if stored == nil || stored.To.Registration != r.opts.To {
		return false, nil
	}
	claim, err := r.host.ReadClaim(ctx, stored.Claim.Name)
	if err != nil || claim == nil || !stored.IsBoundTo(claim, stored.New.Name) {
		return false, err
	}
	r.host.ReportLine("Claim %q was already moved to member %q. Its old disk is volume %q", claim.Name, stored.To.Registration, stored.Old.Name)
	return true, nil
}

// printPlan prints the plan.
func (r *run) printPlan() {
	size := r.Claim.Spec.Resources.Requests[corev1.ResourceStorage]
	r.host.ReportLine("Move claim %q (%s) from member %q to member %q:", r.Claim.Name, size.String(), r.From.Registration, r.To.Registration)
	if r.Run != "" {
		r.host.ReportLine("  An earlier run stopped at step %s. This run continues from there", r.Phase)
		return
	}
	r.host.ReportLine("  1. create claim %q, with the same class, in member %q", r.Copy, r.To.Registration)
	r.host.ReportLine("  2. start a Pod for each of the two claims, with image %s, and copy the data", r.opts.Image)
	r.host.ReportLine("  3. compare both disks by checksum")
	r.host.ReportLine("  4. set the reclaim policy of both volumes to Retain, delete claim %q, and compare the old disk again while the claim is being deleted", r.Claim.Name)
	r.host.ReportLine("  5. create claim %q again, bound to the copy", r.Claim.Name)
	r.host.ReportLine("The old disk, volume %q, is kept until you run this command with --delete-source", r.Old.Name)
}

// validateMove lets the host validate the first writes.
func (r *run) validateMove(ctx context.Context) error {
	r.Run = r.opts.ID
	old, err := r.storage.Volume(ctx, r.Old)
	if err != nil {
		return err
	}
	if err := r.store.Write(ctx, r.Record, true); err != nil {
		return err
	}
	planned := []client.Object{r.CopyClaim(old)}
	for _, role := range []objects.Role{objects.Reader, objects.Writer} {
		pod, err := r.moverPod(ctx, role)
		if err != nil {
			return err
		}
		planned = append(planned, pod)
	}
	for _, obj := range planned {
		if err := r.host.Create(ctx, obj, command.CreateOptions(true)...); err != nil && !apierrors.IsAlreadyExists(err) {
			return r.host.ExplainHostError(fmt.Errorf("create %q: %w", obj.GetName(), err))
		}
	}
	return r.opts.Unchanged(r.host)
}

// causeOfFailure returns the error of a step, or an error for an interruption by the user.
func (r *run) causeOfFailure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted at step %s: %w", r.Phase, ctx.Err())
	}
	return err
}

// saveRecord writes the record.
func (r *run) saveRecord(ctx context.Context) error { return r.store.Write(ctx, r.Record, false) }

// enterPhase begins the next phase.
func (r *run) enterPhase(ctx context.Context, next objects.Phase) error {
	r.Phase = next
	return r.saveRecord(ctx)
}
