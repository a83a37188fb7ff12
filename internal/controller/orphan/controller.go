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
	// DefaultInterval is the interval of accounts of a member if nothing triggers one.
	DefaultInterval = 10 * time.Minute
	// shortest is the minimum pause between two accounts. The pause is share times the duration of
	// the last account, up to longest, to limit the load of lists on a member's API server.
	shortest = 5 * time.Second
	share    = 5
	longest  = time.Minute
	// again is the pause after a failed account.
	again = 30 * time.Second
	// patience bounds one account. 50,000 volumes are a hundred pages.
	patience = 5 * time.Minute
)

// Options are the options of all members' accounts.
type Options struct {
	// Book receives the accounts.
	Book *account.Book
	// Interval of accounts if nothing triggers one.
	Interval time.Duration
	// Namespace of the manager in the host, where its records are.
	Namespace string
}

type sweeper struct {
	*member.Link
	Options
	clock clock.Clock
}

// Setup adds the accounts of a member's volumes to its link.
func Setup(link *member.Link, o Options) error {
	s := &sweeper{Link: link, Options: o, clock: clock.RealClock{}}
	suspicions := o.Book.Suspicions(link.Registration)
	link.Run(func(ctx context.Context) error {
		s.run(ctx, suspicions)
		return nil
	})
	return nil
}

// run makes accounts of the member immediately, at intervals, and when there are candidates,
// until the link ends. Then the orphans are unknown.
func (s *sweeper) run(ctx context.Context, suspicions <-chan struct{}) {
	defer func() {
		account.UncountOrphans(s.Registration)
		s.Book.Unknown(s.Registration, "the member is not connected", s.clock.Now())
		account.UncountSnapshotOrphans(s.Registration)
		if s.Book.Snapshots(s.Registration).Known {
			s.Book.UnknownSnapshots(s.Registration, "the member is not connected", s.clock.Now())
		}
	}()
	var served <-chan struct{}
	if s.Snapshots != nil && s.Snapshots.Cache() == nil {
		served = s.Snapshots.Served()
	}
	for {
		started := s.clock.Now()
		interval := s.Interval
		if err := s.account(ctx); err != nil {
			interval = min(again, s.Interval)
		}
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
		case <-suspicions:
		case <-served:
			served = nil
		}
	}
}

func (s *sweeper) account(ctx context.Context) error {
	sweepCtx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s.Book.Looking(s.Registration)
	found, err := s.sweep(sweepCtx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Info("the member's volumes are not accounted for", "cluster", s.Registration, "cause", err.Error())
		account.UncountOrphans(s.Registration)
		s.Book.Unknown(s.Registration, err.Error(), s.clock.Now())
		return err
	}
	account.CountOrphans(s.Registration, len(found), s.clock.Now())
	s.Book.Found(s.Registration, found)
	return s.accountSnapshots(sweepCtx)
}
