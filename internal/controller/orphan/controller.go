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
	// DefaultInterval between two accounts of a member that nothing asked for.
	DefaultInterval = 10 * time.Minute
	// shortest is the least pause between two accounts. Where they take long, it is
	// share times as long as the last one took, up to longest: a member's API server
	// has other things to do than to be listed.
	shortest = 5 * time.Second
	share    = 5
	longest  = time.Minute
	// again is the pause after an account that failed.
	again = 30 * time.Second
	// patience bounds one account: 50,000 volumes are a hundred pages.
	patience = 5 * time.Minute
)

// Options of the accounts of all members.
type Options struct {
	// Book that they are entered into.
	Book *account.Book
	// Interval between two that nothing asked for.
	Interval time.Duration
	// Namespace of the manager in the host, where its records are.
	Namespace string
}

type sweeper struct {
	*member.Link
	Options
	clock clock.Clock
}

// Setup has a member's volumes accounted for while its link lives.
func Setup(link *member.Link, o Options) error {
	s := &sweeper{Link: link, Options: o, clock: clock.RealClock{}}
	suspicions := o.Book.Suspicions(link.Registration)
	link.Run(func(ctx context.Context) error {
		s.run(ctx, suspicions)
		return nil
	})
	return nil
}

// run accounts for the member at once, at intervals, and when there is a
// suspicion, until the link ends: nothing is known then.
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
