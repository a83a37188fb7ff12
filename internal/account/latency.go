package account

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// underWay limits how many claims are measured at the same time. The oldest
// measurements are dropped first, so one that never ends, for example because its claim was
// deleted, is dropped eventually.
const underWay = 16384

// ProvisioningLatency measures the provisioning latency of claims from one cluster to the other. It measures
// each claim once, and only if this process placed the claim, so objects that a cache replays after
// a restart or a reconnect do not count. The latency includes the time during which the member was
// unreachable.
type ProvisioningLatency struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	started *lru.Cache // UID of the root -> *stepTimes
}

// stepTimes contains the times of one claim's steps. A zero time means that the step has not happened
// yet.
type stepTimes struct{ started, leafBound, hostBound time.Time }

// NewProvisioningLatency creates a ProvisioningLatency that uses the given clock.
func NewProvisioningLatency(c clock.PassiveClock) *ProvisioningLatency {
	return &ProvisioningLatency{clock: c, started: lru.New(underWay)}
}

// Expect creates a member's series before its first measurement.
func (p *ProvisioningLatency) Expect(registration string) {
	leafBoundSeconds.WithLabelValues(registration)
	hostBoundSeconds.WithLabelValues(registration)
}

// Begin records that a claim was placed in a member at the given time.
func (p *ProvisioningLatency) Begin(root types.UID, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started.Add(root, &stepTimes{started: at})
}

// Withdraw drops a claim that was withdrawn from its member.
func (p *ProvisioningLatency) Withdraw(root types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started.Remove(root)
}

// LeafBound records that the leaf claim of a root was observed to be bound.
func (p *ProvisioningLatency) LeafBound(registration string, root types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, now := p.of(root), p.clock.Now()
	if at == nil || !at.leafBound.IsZero() {
		return
	}
	at.leafBound = now
	leafBoundSeconds.WithLabelValues(registration).Observe(now.Sub(at.started).Seconds())
	if !at.hostBound.IsZero() {
		p.end(registration, root, 0)
	}
}

// HostBound records that the root was observed to be bound to its volume, or its promise to be
// fulfilled. HostBound may precede LeafBound, because each cluster has its own watch.
func (p *ProvisioningLatency) HostBound(registration string, root types.UID) {
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

func (p *ProvisioningLatency) end(registration string, root types.UID, took time.Duration) {
	hostBoundSeconds.WithLabelValues(registration).Observe(took.Seconds())
	p.started.Remove(root)
}

func (p *ProvisioningLatency) of(root types.UID) *stepTimes {
	value, _ := p.started.Get(root)
	at, _ := value.(*stepTimes)
	return at
}
