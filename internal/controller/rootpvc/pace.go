package rootpvc

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
)

const (
	// paceBurst and paceRefill bound how often what a member holds against a claim is
	// told anew: its words may be others each time, and each is two writes to the host,
	// and what others make of them. An honest member fails a claim in a few ways.
	paceBurst  = 5
	paceRefill = 10 * time.Second
	// paced is for how many claims it is counted.
	paced = 4096
)

// pace bounds, for each root, what is told of it because a member says so.
type pace struct {
	mu    sync.Mutex
	roots *lru.Cache // root UID -> *rate.Limiter
	owed  map[types.UID]time.Duration
}

func newPace() *pace {
	return &pace{roots: lru.New(paced), owed: map[types.UID]time.Duration{}}
}

// spend is false if there has been enough for now; then owes says when to look again.
func (p *pace) spend(root types.UID, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	value, _ := p.roots.Get(root)
	limiter, known := value.(*rate.Limiter)
	if !known {
		limiter = rate.NewLimiter(rate.Every(paceRefill), paceBurst)
		p.roots.Add(root, limiter)
	}
	if limiter.AllowN(now, 1) {
		return true
	}
	p.owed[root] = paceRefill
	return false
}

// owes is after how long something is still to be told of a root; 0 for nothing. It
// is asked once.
func (p *pace) owes(root types.UID) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	after := p.owed[root]
	delete(p.owed, root)
	return after
}
