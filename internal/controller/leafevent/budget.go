package leafevent

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
)

const (
	// budgetBurst and budgetRefill limit the event writes for one root. The burst is larger
	// than that of client-go's recorders (25 for an object and component, then one in five
	// minutes), because it covers all components of the member.
	budgetBurst  = 30
	budgetRefill = 30 * time.Second
	// budgets is the maximum number of roots that have a limiter.
	budgets = 4096
	// memberBurst and memberRate (per second) limit the event writes for all roots together. An event
	// takes about 3 KiB of the host's etcd and lives for an hour, so a hostile member can fill about
	// 60 MiB.
	memberBurst = 1000
	memberRate  = 5
)

// budget limits the writes for each root, and for all roots of the member.
type budget struct {
	mu     sync.Mutex
	member *rate.Limiter
	roots  *lru.Cache // root UID -> *rate.Limiter
}

func newBudget() *budget {
	return &budget{member: rate.NewLimiter(memberRate, memberBurst), roots: lru.New(budgets)}
}

// spend takes one write from a root's budget and from the member's. It returns false, and takes
// nothing, if one of them is used up.
func (b *budget) spend(root types.UID, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.member.TokensAt(now) >= 1 && b.of(root).AllowN(now, 1) && b.member.AllowN(now, 1)
}

// of returns a root's limiter.
func (b *budget) of(root types.UID) *rate.Limiter {
	if value, ok := b.roots.Get(root); ok {
		if limiter, ok := value.(*rate.Limiter); ok {
			return limiter
		}
	}
	limiter := rate.NewLimiter(rate.Every(budgetRefill), budgetBurst)
	b.roots.Add(root, limiter)
	return limiter
}
