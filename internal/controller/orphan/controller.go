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
	// shortest is the minimum delay between two inventories. The delay is share times the duration of
	// the last inventory, up to longest, to limit the load that lists cause on a member's API server.
	shortest = 5 * time.Second
	share    = 5
	longest  = time.Minute
	// again is the delay after a failed inventory.
	again = 30 * time.Second
	// patience is the timeout of one inventory. Listing 50,000 volumes takes a hundred pages.
	patience = 5 * time.Minute
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
	Slots Slots
}

type sweeper struct {
	*member.Link
	Options
	clock clock.Clock
}

// Setup adds the inventory of a member's volumes to its link.
func Setup(link *member.Link, o Options) error {
	s := &sweeper{Link: link, Options: o, clock: clock.RealClock{}}
	candidates := o.Orphans.ResetCandidates(link.Registration)
	link.Run(func(ctx context.Context) error {
		s.run(ctx, candidates)
		return nil
	})
	return nil
}

// run takes an inventory of the member immediately, at intervals, and when the caches show a
// candidate, until the link ends. After that, the orphans are unknown.
func (s *sweeper) run(ctx context.Context, candidates <-chan struct{}) {
	defer func() {
		account.UncountOrphans(s.Registration)
		s.Orphans.Unknown(s.Registration, "the member is not connected", s.clock.Now())
		account.UncountSnapshotOrphans(s.Registration)
		if s.Orphans.Snapshots(s.Registration).Known {
			s.Orphans.UnknownSnapshots(s.Registration, "the member is not connected", s.clock.Now())
		}
	}()
	var served <-chan struct{}
	if s.Snapshots != nil && s.Snapshots.Cache() == nil {
		served = s.Snapshots.Served()
	}
	for {
		release := s.Slots.acquire(ctx, s.clock)
		started := s.clock.Now()
		interval := s.Interval
		if err := s.account(ctx); err != nil {
			interval = min(again, s.Interval)
		}
		release()
		pause := min(max(shortest, share*s.clock.Since(started)), longest)
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

func (s *sweeper) account(ctx context.Context) error {
	sweepCtx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s.Orphans.BeginInventory(s.Registration)
	found, err := s.sweep(sweepCtx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Info("could not take the inventory of the member's volumes", "cluster", s.Registration, "cause", err.Error())
		account.UncountOrphans(s.Registration)
		s.Orphans.Unknown(s.Registration, err.Error(), s.clock.Now())
		return err
	}
	account.CountOrphans(s.Registration, len(found), s.clock.Now())
	s.Orphans.Found(s.Registration, found)
	return s.accountSnapshots(sweepCtx)
}
