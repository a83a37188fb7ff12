package account

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// maxMeasurements limits how many claims are measured at the same time. The oldest
// measurements are dropped first, so one that never ends, for example because its claim was
// deleted, is dropped eventually.
const maxMeasurements = 16384

// ProvisioningLatency measures the provisioning latency of claims from one cluster to the other. It measures
// each claim once, and only if this process placed the claim, so objects that a cache replays after
// a restart or a reconnect do not count. The latency includes the time during which the member was
// unreachable.
type ProvisioningLatency struct {
	clock clock.PassiveClock

	mu           sync.Mutex
	measurements *lru.Cache // UID of the root -> *stepTimes
}

// stepTimes contains the times of one claim's steps. A zero time means that the step has not happened
// yet.
type stepTimes struct{ started, leafBound, hostBound time.Time }

// NewProvisioningLatency creates a ProvisioningLatency that uses the given clock.
func NewProvisioningLatency(c clock.PassiveClock) *ProvisioningLatency {
	return &ProvisioningLatency{clock: c, measurements: lru.New(maxMeasurements)}
}

// CreateSeries creates a member's series before its first measurement.
func (p *ProvisioningLatency) CreateSeries(registration string) {
	leafBoundSeconds.WithLabelValues(registration)
	hostBoundSeconds.WithLabelValues(registration)
}

// BeginMeasurement records that a claim was placed in a member at the given time.
func (p *ProvisioningLatency) BeginMeasurement(root types.UID, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.measurements.Add(root, &stepTimes{started: at})
}

// DropMeasurement drops a claim that was withdrawn from its member.
func (p *ProvisioningLatency) DropMeasurement(root types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.measurements.Remove(root)
}

// RecordLeafBound records that the leaf claim of a root was observed to be bound.
func (p *ProvisioningLatency) RecordLeafBound(registration string, root types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, now := p.measurementOf(root), p.clock.Now()
	if at == nil || !at.leafBound.IsZero() {
		return
	}
	at.leafBound = now
	leafBoundSeconds.WithLabelValues(registration).Observe(now.Sub(at.started).Seconds())
	if !at.hostBound.IsZero() {
		p.finishMeasurement(registration, root, 0)
	}
}

// RecordHostBound records that the root was observed to be bound to its volume, or its promise to be
// fulfilled. RecordHostBound may precede RecordLeafBound, because each cluster has its own watch.
func (p *ProvisioningLatency) RecordHostBound(registration string, root types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, now := p.measurementOf(root), p.clock.Now()
	switch {
	case at == nil:
	case at.leafBound.IsZero():
		at.hostBound = now
	default:
		p.finishMeasurement(registration, root, now.Sub(at.leafBound))
	}
}

func (p *ProvisioningLatency) finishMeasurement(registration string, root types.UID, took time.Duration) {
	hostBoundSeconds.WithLabelValues(registration).Observe(took.Seconds())
	p.measurements.Remove(root)
}

func (p *ProvisioningLatency) measurementOf(root types.UID) *stepTimes {
	value, _ := p.measurements.Get(root)
	at, _ := value.(*stepTimes)
	return at
}
