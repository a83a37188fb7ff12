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
)

// budget limits the writes for each root.
type budget struct {
	mu    sync.Mutex
	roots *lru.Cache // root UID -> *rate.Limiter
}

func newBudget() *budget { return &budget{roots: lru.New(budgets)} }

// spend takes one write from a root's budget. It returns false if the budget is used up.
func (b *budget) spend(root types.UID, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if value, ok := b.roots.Get(root); ok {
		if limiter, ok := value.(*rate.Limiter); ok {
			return limiter.AllowN(now, 1)
		}
	}
	limiter := rate.NewLimiter(rate.Every(budgetRefill), budgetBurst)
	b.roots.Add(root, limiter)
	return limiter.AllowN(now, 1)
}
