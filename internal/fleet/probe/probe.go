package probe

import (
	"context"
	"errors"
	"time"

	"k8s.io/utils/clock"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/member/hostrevision"
	"github.com/xylem-io/xylem/internal/member/metrics"
)

const (
	// retry is the delay after a failed probe. The link ends after mostFailures failed probes in a row.
	retry        = time.Second
	mostFailures = 3
)

// Probe probes one member.
type Probe struct {
	Fence *fencing.Fence
	Clock clock.Clock
	// Interval is the interval at which the fence is renewed, and EpochInterval the longer one at which
	// its epoch advances. Timeout bounds one probe: a renewal and, if due, the advance of the epoch.
	Interval, EpochInterval, Timeout time.Duration
	// Leads returns an error if this process does not lead.
	Leads func() error
	// Registration is the name that metrics use.
	Registration string
}

// Run renews the fence until the context ends. It retries a failed probe soon. It returns an error
// after several failures in a row, or if the fence is lost.
func (p Probe) Run(ctx context.Context) error {
	failures := 0
	pause := p.Interval
	advanced := p.Clock.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.Clock.After(pause):
		}
		if err := p.Leads(); err != nil {
			return err
		}
		started := p.Clock.Now()
		bounded, cancel := context.WithTimeout(ctx, p.Timeout)
		err := p.Fence.Renew(bounded)
		if err == nil && started.Sub(advanced) >= p.EpochInterval {
			if err = p.Fence.Advance(bounded); err == nil {
				advanced = started
			}
		}
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			metrics.ProbeSeconds.WithLabelValues(p.Registration).Observe(p.Clock.Since(started).Seconds())
			failures, pause = 0, p.Interval
			continue
		}
		failures++
		pause = min(retry, p.Interval)
		if lasts(err) || failures >= mostFailures || p.Fence.Held() != nil {
			return err
		}
	}
}

// lasts reports whether a retry cannot help.
func lasts(err error) bool {
	problem := &access.Problem{}
	return errors.Is(err, hostrevision.ErrRestored) ||
		errors.As(err, &problem) && problem.Reason != v1alpha1.ReasonUnreachable && problem.Reason != v1alpha1.ReasonLeaseRejected
}
