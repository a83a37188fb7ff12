package rootpvc

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"github.com/xylem-io/xylem/internal/guarded/pacing"
)

const (
	// paceBurst and paceRefill limit how often a member's changing messages about a rejected claim
	// are reported. Each message costs two writes to the host, and other controllers react to
	// them. An honest member rejects a claim for only a few reasons.
	paceBurst  = 5
	paceRefill = 10 * time.Second
	// tracked is the maximum number of claims that are remembered.
	tracked = 4096
	// Answer is how long Xylem waits for the host's PV controller to request a volume after the
	// scheduler has selected the node. The PV controller needs milliseconds, or longer after a
	// conflict, which it would report to the user as a Warning.
	Answer = time.Second
)

// pace limits, for each root, the rate of reports that a member causes, and the time to wait
// for other writers.
type pace struct {
	mu     sync.Mutex
	roots  *pacing.ObjectRate
	waited *lru.Cache // root UID -> resourceVersion for which Xylem waited
	since  *lru.Cache // root UID -> when a state of the root began
	owed   map[types.UID]time.Duration
}

func newPace() *pace {
	return &pace{
		roots:  pacing.NewObjectRate(rate.NewLimiter(rate.Inf, 0), paceBurst, paceRefill),
		waited: lru.New(tracked), since: lru.New(tracked), owed: map[types.UID]time.Duration{},
	}
}

// Wait returns true the first time that it is called for a root with this resourceVersion. Owes
// then returns how long to wait.
func (p *pace) Wait(root types.UID, version string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if before, known := p.waited.Get(root); known && before == version {
		return false
	}
	p.waited.Add(root, version)
	p.owed[root] = Answer
	return true
}

// Lasted returns true, and restarts, once a state of a root has lasted for the given time. The state
// begins with the first call after Ended. Before that, Owes returns how long to wait.
func (p *pace) Lasted(root types.UID, after time.Duration, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	value, known := p.since.Get(root)
	since, _ := value.(time.Time)
	if !known {
		since = now
		p.since.Add(root, now)
	}
	if left := since.Add(after).Sub(now); left > 0 {
		p.owed[root] = left
		return false
	}
	p.since.Remove(root)
	return true
}

// Ended ends the state that Lasted measures.
func (p *pace) Ended(root types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since.Remove(root)
}

// spend returns false if the limit is reached. Owes then returns when to retry.
func (p *pace) spend(root types.UID, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.roots.Take(root, now) == 0 {
		return true
	}
	p.owed[root] = paceRefill
	return false
}

// Owes returns the delay after which the root must be reconciled again, or 0. It returns each delay
// to the first caller only.
func (p *pace) Owes(root types.UID) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	after := p.owed[root]
	delete(p.owed, root)
	return after
}
