package account

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// underWay is how many claims are measured at a time. What was begun and never
// came to its end, such as a claim that was deleted meanwhile, is forgotten as the
// oldest of them.
const underWay = 16384

// Passages measures how long claims take from one cluster to the other. A passage
// is measured only if this process began it, and once: what a cache shows again
// after a restart or a reconnect counts for nothing, and a claim that waits while
// its member is away is measured with the time that it waited.
type Passages struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	begun *lru.Cache // UID of the root -> *passage
}

// passage of one claim; a zero time has not come yet.
type passage struct{ begun, leafBound, hostBound time.Time }

// NewPassages measures by a clock.
func NewPassages(c clock.PassiveClock) *Passages {
	return &Passages{clock: c, begun: lru.New(underWay)}
}

// Expect shows a member's series before the first passage there.
func (p *Passages) Expect(registration string) {
	leafBoundSeconds.WithLabelValues(registration)
	hostBoundSeconds.WithLabelValues(registration)
}

// Begin notes that a claim was placed in a member, beginning at that time.
func (p *Passages) Begin(root types.UID, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun.Add(root, &passage{begun: at})
}

// Withdraw forgets a claim that was withdrawn from its member.
func (p *Passages) Withdraw(root types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun.Remove(root)
}

// LeafBound notes that the leaf claim of a root was observed to be bound.
func (p *Passages) LeafBound(registration string, root types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, now := p.of(root), p.clock.Now()
	if at == nil || !at.leafBound.IsZero() {
		return
	}
	at.leafBound = now
	leafBoundSeconds.WithLabelValues(registration).Observe(now.Sub(at.begun).Seconds())
	if !at.hostBound.IsZero() {
		p.end(registration, root, 0)
	}
}

// HostBound notes that the root was observed to be bound to its volume, or that the
// promise that it is bound to was observed to be fulfilled. The two clusters are
// watched apart: it may be observed before LeafBound.
func (p *Passages) HostBound(registration string, root types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, now := p.of(root), p.clock.Now()
	switch {
	case at == nil:
	case at.leafBound.IsZero():
		at.hostBound = now
	default:
		p.end(registration, root, now.Sub(at.leafBound))
	}
}

func (p *Passages) end(registration string, root types.UID, took time.Duration) {
	hostBoundSeconds.WithLabelValues(registration).Observe(took.Seconds())
	p.begun.Remove(root)
}

func (p *Passages) of(root types.UID) *passage {
	value, _ := p.begun.Get(root)
	at, _ := value.(*passage)
	return at
}
