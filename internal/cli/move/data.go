package move

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/xylem-io/xylem/internal/cli/move/objects"
	"github.com/xylem-io/xylem/internal/cli/move/transfer"
)

// transferData copies the data.
func (r *run) transferData(ctx context.Context) error {
	from, to := r.endOfTransfer(objects.Reader), r.endOfTransfer(objects.Writer)
	total, err := r.sizeOfVolume(ctx, from, to)
	if err != nil {
		return err
	}
	r.host.ReportLine("Copying about %s", transfer.HumanBytes(total))
	bar := transfer.NewProgressBar(r.host.Env.Drawing(), r.host.Env.Clock, total)
	err = r.opts.Shell.Copy(ctx, from, to, r.contentOfVolume(), bar.AddBytes)
	copied := bar.EndProgress()
	if err != nil {
		return fmt.Errorf("the copy was interrupted after %s: %w", copied, err)
	}
	r.host.ReportLine("Copied %s", copied)
	return nil
}

func (r *run) endOfTransfer(role objects.Role) transfer.End {
	return transfer.End{Pod: objects.MoverName(r.Record, role), Where: fmt.Sprintf("member %q", role.PlaceOfRole(r.Record).Registration)}
}

func (r *run) contentOfVolume() transfer.Content {
	return transfer.Content{Device: r.IsBlock(), Bytes: r.Bytes}
}

// sizeOfVolume returns the number of bytes to copy. For a block device, it also records the number, and
// checks that the copy is not smaller.
func (r *run) sizeOfVolume(ctx context.Context, from, to transfer.End) (int64, error) {
	if !r.IsBlock() {
		used, err := r.opts.Shell.UsedBytes(ctx, from.Pod)
		if err != nil {
			return 0, fmt.Errorf("read the disk in %s: %w", from.Where, err)
		}
		return used, nil
	}
	has, err := r.opts.Shell.DeviceBytes(ctx, from.Pod)
	if err != nil {
		return 0, fmt.Errorf("read the size of the disk in %s: %w", from.Where, err)
	}
	gets, err := r.opts.Shell.DeviceBytes(ctx, to.Pod)
	if err != nil {
		return 0, fmt.Errorf("read the size of the copy in %s: %w", to.Where, err)
	}
	if gets < has {
		return 0, fmt.Errorf("the old disk has %d bytes, but the new disk in %s has only %d, although the new claim requests at least the capacity of the old volume. Increase the request of claim %q, and wait until its volume is expanded. Run this command with --undo, then move the claim again", has, to.Where, gets, r.Claim.Name)
	}
	r.Bytes = has
	return has, nil
}

// checksumOf calculates the checksum of a disk in a Pod.
func (r *run) checksumOf(ctx context.Context, pod string, where objects.Place) (string, error) {
	sum, err := r.opts.Shell.Sum(ctx, pod, r.contentOfVolume())
	if err != nil {
		return "", fmt.Errorf("calculate the checksum in member %q: %w", where.Registration, err)
	}
	return sum, nil
}

// compareDisks compares the checksums of both disks after the copy.
func (r *run) compareDisks(ctx context.Context) error {
	r.host.ReportLine("Comparing both disks by checksum")
	sums := make([]string, 2)
	group, groupCtx := errgroup.WithContext(ctx)
	for i, role := range []objects.Role{objects.Reader, objects.Writer} {
		group.Go(func() (err error) {
			sums[i], err = r.checksumOf(groupCtx, objects.MoverName(r.Record, role), role.PlaceOfRole(r.Record))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if sums[0] != sums[1] {
		return fmt.Errorf("the disks differ: checksum %s in member %q, %s in member %q. Somebody wrote to one of them during the copy, or one file system does not support something that the other contains",
			sums[0], r.From.Registration, sums[1], r.To.Registration)
	}
	r.Sum = sums[0]
	return nil
}
