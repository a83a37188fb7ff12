package rootservice

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// pausedName is a Service or EndpointSlice that Xylem does not try to create for a while. If the name is empty, it is all of
// the namespace.
type pausedName struct {
	slice bool
	types.NamespacedName
}

// allIn returns the pausedName of all Services, or all EndpointSlices, in a namespace.
func allIn(namespace string, slice bool) pausedName {
	return pausedName{slice, types.NamespacedName{Namespace: namespace}}
}

// pause is a time in which Xylem does not try to create an object.
type pause struct {
	until  time.Time
	length time.Duration
	// quota is the member's rejection, or nil if a foreign object has the name.
	quota error
}

// pauses records the pauses. It is empty after a restart of the link.
type pauses struct {
	clock clock.PassiveClock
	// shortest is the first pause after a quota's rejection.
	shortest time.Duration

	mu     sync.Mutex
	byName map[pausedName]pause
}

// remaining returns the rest of a pause, or 0.
func (p *pauses) remaining(name pausedName) (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := p.byName[name]
	rest := found.until.Sub(p.clock.Now())
	if rest > 0 {
		return rest, found.quota
	}
	if found.quota == nil {
		delete(p.byName, name)
	}
	return 0, nil
}

// recordNameTaken begins the pause after Xylem found a foreign object.
func (p *pauses) recordNameTaken(name pausedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byName[name] = pause{until: p.clock.Now().Add(nameTakenInterval)}
}

// recordQuota begins the pause after a quota rejected an object of the namespace, and returns its length. It is twice as long
// as the last one, unless an object has been created since, or the last one has not ended yet.
func (p *pauses) recordQuota(namespace string, slice bool, rejection error) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := allIn(namespace, slice)
	last, now := p.byName[name], p.clock.Now()
	if rest := last.until.Sub(now); rest > 0 {
		return rest // from a concurrent request
	}
	length := min(max(2*last.length, p.shortest), nameTakenInterval)
	p.byName[name] = pause{now.Add(length), length, rejection}
	return length
}

// forgetQuota ends the pause of a namespace whose objects can be created, or are not needed.
func (p *pauses) forgetQuota(namespace string, slice bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byName, allIn(namespace, slice))
}
