package orphan

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/member"
)

const (
	// DefaultInterval is the interval between inventories of a member if nothing triggers one earlier.
	DefaultInterval = 10 * time.Minute
	// minPause is the minimum delay between two inventories. The delay is share times the duration of
	// the last inventory, up to longest, to limit the load that lists cause on a member's API server.
	minPause    = 5 * time.Second
	pauseFactor = 5
	maxPause    = time.Minute
	// retryDelay is the delay after a failed inventory.
	retryDelay = 30 * time.Second
	// inventoryTimeout is the timeout of one inventory. Listing 50,000 volumes takes a hundred pages.
	inventoryTimeout = 5 * time.Minute
)

// Options contains what the inventories of all members share.
type Options struct {
	// Orphans receives the results.
	Orphans *account.OrphanTracker
	// Interval is the interval between inventories if nothing triggers one earlier.
	Interval time.Duration
	// Namespace is the manager's namespace in the host, where its records are.
	Namespace string
	// Slots are shared by all members.
	Slots InventorySlots
}

type inventoryRunner struct {
	*member.Link
	Options
	clock clock.Clock
}

// Setup adds the inventory of a member's volumes to its link.
func Setup(link *member.Link, o Options) error {
	s := &inventoryRunner{Link: link, Options: o, clock: clock.RealClock{}}
	candidates := o.Orphans.ResetCandidates(link.Registration)
	link.AddRunnable(func(ctx context.Context) error {
		s.runInventories(ctx, candidates)
		return nil
	})
	return nil
}

// runInventories takes an inventory of the member immediately, at intervals, and when the caches show a
// candidate, until the link ends. After that, the orphans are unknown.
func (s *inventoryRunner) runInventories(ctx context.Context, candidates <-chan struct{}) {
	defer func() {
		account.DeleteOrphanMetrics(s.Registration)
		s.Orphans.RecordInventoryFailure(s.Registration, "the member is not connected", s.clock.Now())
		account.DeleteOrphanedSnapshotMetrics(s.Registration)
		if s.Orphans.OrphanedSnapshots(s.Registration).Known {
			s.Orphans.RecordSnapshotInventoryFailure(s.Registration, "the member is not connected", s.clock.Now())
		}
	}()
	var served <-chan struct{}
	if s.Snapshots != nil && s.Snapshots.ServedCache() == nil {
		served = s.Snapshots.ServedChannel()
	}
	for {
		release := s.Slots.acquireSlot(ctx, s.clock)
		started := s.clock.Now()
		interval := s.Interval
		if err := s.takeVolumeInventory(ctx); err != nil {
			interval = min(retryDelay, s.Interval)
		}
		release()
		pause := min(max(minPause, pauseFactor*s.clock.Since(started)), maxPause)
		select {
		case <-ctx.Done():
			return
		case <-s.clock.After(pause):
		}
		select {
		case <-ctx.Done():
			return
		case <-s.clock.After(max(interval-pause, 0)):
		case <-candidates:
		case <-served:
			served = nil
		}
	}
}

func (s *inventoryRunner) takeVolumeInventory(ctx context.Context) error {
	sweepCtx, cancel := context.WithTimeout(ctx, inventoryTimeout)
	defer cancel()
	s.Orphans.BeginInventory(s.Registration)
	found, err := s.findOrphanVolumes(sweepCtx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Info("could not take the inventory of the member's volumes", "cluster", s.Registration, "cause", err.Error())
		account.DeleteOrphanMetrics(s.Registration)
		s.Orphans.RecordInventoryFailure(s.Registration, err.Error(), s.clock.Now())
		return err
	}
	account.SetOrphanMetrics(s.Registration, len(found), s.clock.Now())
	s.Orphans.RecordInventory(s.Registration, found)
	return s.takeSnapshotInventory(sweepCtx)
}
