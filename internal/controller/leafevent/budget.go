package leafevent

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
)

const (
	// budgetBurst and budgetRefill bound the writes for one root, whatever its
	// leaf has to say and however many events that takes: more at once than
	// client-go's own recorders allow a component for an object (25, and one in
	// five minutes), since here all components of the member report.
	budgetBurst  = 30
	budgetRefill = 30 * time.Second
	// budgets is for how many roots it is counted.
	budgets = 4096
)

// budget bounds the writes for each root.
type budget struct {
	mu    sync.Mutex
	roots *lru.Cache // root UID -> *rate.Limiter
}

func newBudget() *budget { return &budget{roots: lru.New(budgets)} }

// spend is false when a root has no write left.
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
