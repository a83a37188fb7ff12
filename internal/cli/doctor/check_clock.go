package doctor

import (
	"fmt"
	"time"
)

// CheckClock is the name of this check.
const CheckClock Check = "Clock"

var (
	clockCheck       = checkOf[*Facts]{name: CheckClock, judge: infallible(judgeHostClock)}
	memberClockCheck = checkOf[*Member]{name: CheckClock, judge: infallible(judgeMemberClock)}
)

// Doctor reports a warning or an error if the difference between two clocks exceeds these.
const (
	skewSmall = 10 * time.Second
	skewLarge = time.Minute
)

// judgeHostClock compares the clock of this machine with the host's.
func judgeHostClock(f *Facts) []Finding {
	h := &f.Host
	c := h.Clock
	switch {
	case !c.Known:
		return nil
	case c.Ahead.Abs()-c.Precision > skewLarge:
		return []Finding{problem(Warning, fmt.Sprintf("the clock of this machine is %s the host's, so kubectl prints wrong ages, and may misjudge whether tokens have expired", describeSkew(-c.Ahead)), "Synchronize this machine's clock (NTP), or the host's if that one is wrong.")}
	}
	return []Finding{passed("the clocks of this machine and the host differ by less than %s", skewAtMost(c.Ahead, c.Precision))}
}

// judgeMemberClock compares a member's clock with the host's.
func judgeMemberClock(m *Member) []Finding {
	h := m.host
	if !m.Clock.Known || !h.Clock.Known {
		return nil
	}
	ahead, precision := m.Clock.Ahead-h.Clock.Ahead, m.Clock.Precision+h.Clock.Precision
	level := Warning
	switch surely := ahead.Abs() - precision; {
	case surely > skewLarge:
		level = Error
	case surely <= skewSmall:
		return []Finding{passed("the clocks of the member and the host differ by less than %s", skewAtMost(ahead, precision))}
	}
	return []Finding{problem(level, fmt.Sprintf("the member's clock is %s the host's, so tokens, Leases and the order of events are evaluated incorrectly", describeSkew(ahead)), "Synchronize the clocks of both clusters (NTP).")}
}

func describeSkew(ahead time.Duration) string {
	if ahead < 0 {
		return fmt.Sprintf("%s behind", (-ahead).Round(time.Second))
	}
	return fmt.Sprintf("%s ahead of", ahead.Round(time.Second))
}

func skewAtMost(ahead, precision time.Duration) time.Duration {
	return (ahead.Abs() + precision).Truncate(time.Second) + time.Second
}
