package rootpvc

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
)

const (
	// paceBurst and paceRefill bound how often why a member rejects a claim is
	// reported again: its words may differ each time, and each is two writes to the host,
	// and what other controllers make of them. An honest member fails a claim in a few ways.
	paceBurst  = 5
	paceRefill = 10 * time.Second
	// paced is for how many claims it is counted.
	paced = 4096
	// answer is how long the host's PV controller is given to ask for a volume, after
	// the scheduler has chosen the node. It does so within milliseconds, and later where
	// it met with a conflict, of which it would tell the user as a Warning.
	answer = time.Second
)

// pace bounds, for each root, what is reported because a member says so, and how
// long others are waited for.
type pace struct {
	mu     sync.Mutex
	roots  *lru.Cache // root UID -> *rate.Limiter
	waited *lru.Cache // root UID -> its resourceVersion then
	owed   map[types.UID]time.Duration
}

func newPace() *pace {
	return &pace{roots: lru.New(paced), waited: lru.New(paced), owed: map[types.UID]time.Duration{}}
}

// wait is true the first time that a root is seen at this version; then owes says
// until when.
func (p *pace) wait(root types.UID, version string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if before, known := p.waited.Get(root); known && before == version {
		return false
	}
	p.waited.Add(root, version)
	p.owed[root] = answer
	return true
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

// owes is after how long something is still to be reported of a root; 0 for nothing. It
// is asked once.
func (p *pace) owes(root types.UID) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	after := p.owed[root]
	delete(p.owed, root)
	return after
}
