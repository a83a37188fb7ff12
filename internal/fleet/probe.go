package fleet

import (
	"context"
	"errors"
	"time"

	"k8s.io/utils/clock"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/internal/member/fencing"
)

const (
	// retryDelay is the delay after a failed probe. The link ends after maxFailures failed probes in a row.
	retryDelay  = time.Second
	maxFailures = 3
)

// FenceProbe probes one member.
type FenceProbe struct {
	Fence *fencing.Fence
	Clock clock.Clock
	// Interval is the interval at which the fence is renewed, and EpochInterval the longer one at which
	// its epoch advances. Timeout bounds one probe: a renewal and, if due, the advance of the epoch.
	Interval, EpochInterval, Timeout time.Duration
	// CheckLeading returns an error if this process does not lead.
	CheckLeading func() error
	// Registration is the name that metrics use.
	Registration string
}

// KeepFenceRenewed renews the fence until the context ends. It retries a failed probe soon. It returns an error
// after several failures in a row, or if the fence is lost.
func (p FenceProbe) KeepFenceRenewed(ctx context.Context) error {
	failures := 0
	pause := p.Interval
	advanced := p.Clock.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.Clock.After(pause):
		}
		if err := p.CheckLeading(); err != nil {
			return err
		}
		started := p.Clock.Now()
		bounded, cancel := context.WithTimeout(ctx, p.Timeout)
		err := p.Fence.RenewLease(bounded)
		if err == nil && started.Sub(advanced) >= p.EpochInterval {
			if err = p.Fence.AdvanceEpoch(bounded); err == nil {
				advanced = started
			}
		}
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			member.ProbeSeconds.WithLabelValues(p.Registration).Observe(p.Clock.Since(started).Seconds())
			failures, pause = 0, p.Interval
			continue
		}
		failures++
		pause = min(retryDelay, p.Interval)
		if isPermanentFailure(err) || failures >= maxFailures || p.Fence.CheckFenceHeld() != nil {
			return err
		}
	}
}

// isPermanentFailure reports whether a retry cannot help.
func isPermanentFailure(err error) bool {
	problem := &access.ConnectionProblem{}
	return errors.Is(err, fencing.ErrHostRestored) ||
		errors.As(err, &problem) && problem.Reason != v1alpha1.ReasonUnreachable && problem.Reason != v1alpha1.ReasonLeaseRejected
}
