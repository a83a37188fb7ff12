package leafevent

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/xylem-io/xylem/internal/guarded"
)

const (
	// budgetBurst and budgetRefill limit the event writes for one root. The burst is larger
	// than that of client-go's recorders (25 for an object and component, then one in five
	// minutes), because it covers all components of the member.
	budgetBurst  = 30
	budgetRefill = 30 * time.Second
	// memberBurst and memberRate (per second) limit the event writes for all roots together. An event
	// takes about 3 KiB of the host's etcd and lives for an hour, so a hostile member can fill about
	// 60 MiB.
	memberBurst = 1000
	memberRate  = 5
)

func newEventBudget() *guarded.ObjectRate {
	return guarded.NewObjectRate(rate.NewLimiter(memberRate, memberBurst), budgetBurst, budgetRefill)
}
