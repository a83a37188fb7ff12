package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/xylem-io/xylem/test/fault/proxy"
	"github.com/xylem-io/xylem/test/fault/rig"
)

const (
	// blackHole is how long a cluster is a black hole, and stale is how long lists and watches are
	// stale. Both exceed the time for which the manager holds a fence without renewal.
	blackHole = 5 * time.Second
	stale     = 9 * time.Second
	// stalled exceeds the timeouts of all of the manager's clients.
	stalled = 12 * time.Second
)

// injector counts the writes of a run and injects the faults.
type injector struct {
	rig       *rig.Rig
	namespace string
	revisions map[*proxy.Proxy]string // resource versions before Act, for stale lists

	mu     sync.Mutex
	counts map[string]int
	points []Point
	faults []Fault
	hit    map[Fault]bool
	until  time.Time // when the last fault ends
	ended  bool
	// closed prevents further restores from beginning.
	closed bool
	// restore is the planned or completed restore, or nil.
	restore *restore
}

// inject starts to count writes and to inject the faults.
func inject(ctx context.Context, r *rig.Rig, namespace string, faults []Fault) (*injector, error) {
	i := &injector{
		rig: r, namespace: namespace, faults: faults,
		revisions: map[*proxy.Proxy]string{}, counts: map[string]int{}, hit: map[Fault]bool{},
	}
	var err error
	if i.restore, err = prepareRestore(ctx, r, faults); err != nil {
		return nil, err
	}
	r.Writes.Reset()
	for _, p := range r.Proxies() {
		if i.revisions[p], err = p.Mark(ctx); err != nil {
			return nil, err
		}
	}
	i.each(func(p *proxy.Proxy) { p.Arm(i.plan) })
	return i, nil
}

// end removes all faults.
func (i *injector) end() {
	i.mu.Lock()
	i.ended = true
	i.mu.Unlock()
	i.heal()
}

func (i *injector) heal() {
	for _, p := range i.rig.Proxies() {
		p.Disarm()
		p.FreshLists()
	}
}

// plan returns the fault for a write, or "". The proxy calls it before it forwards the write.
func (i *injector) plan(r proxy.Request) proxy.Fault {
	key, counts := keyOf(r, i.namespace)
	if !counts {
		return ""
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.counts[key]++
	point := Point{Key: key, N: i.counts[key]}
	i.points = append(i.points, point)
	for _, f := range i.faults {
		if f.Point == point && !i.hit[f] && (!i.closed || !slices.Contains(Restores, f.Kind)) {
			i.hit[f] = true
			i.begin(f.Kind)
			return inProxy[f.Kind]
		}
	}
	return ""
}

// begin starts the part of a fault that affects more than the write itself.
func (i *injector) begin(kind Kind) {
	lasts := time.Duration(0)
	switch kind {
	case EndWatches:
		go i.each(func(p *proxy.Proxy) { p.EndWatches() })
	case GoneWatches:
		go i.each(func(p *proxy.Proxy) {
			p.GoneWatches(goneWatches)
			p.EndWatches()
		})
	case StaleLists:
		lasts = stale
		i.each(func(p *proxy.Proxy) { p.StaleLists(i.revisions[p]) })
	case StaleHost:
		lasts = stale
		host := i.rig.Proxy(rig.Host)
		host.StaleLists(i.revisions[host])
	case StaleClaims, StaleVolumes, StalePods, StaleSnapshots, StaleContents:
		lasts = stale
		i.each(func(p *proxy.Proxy) { p.StaleLists(i.revisions[p], lagging[kind]) })
	case LagClaims, LagVolumes, LagPods, LagSnapshots, LagContents:
		lasts = stale
		i.each(func(p *proxy.Proxy) { p.LagWatches(lagging[kind]) })
	case RestoreHost, RestoreMember, KillRestoreHost, KillRestoreMember:
		i.restore.begin(i.rig, kind)
	case BlackHole:
		lasts = blackHole
	case Stall:
		lasts = stalled
	default:
	}
	if lasts == 0 {
		return
	}
	i.until = time.Now().Add(lasts)
	time.AfterFunc(lasts, func() {
		i.mu.Lock()
		ended := i.ended
		i.mu.Unlock()
		if ended {
			return
		}
		i.heal()
		i.each(func(p *proxy.Proxy) { p.Arm(i.plan) })
	})
}

// goneWatches is the number of watches that fail with 410 Expired. A link has about as many.
const goneWatches = 8

func (i *injector) each(do func(*proxy.Proxy)) {
	for _, p := range i.rig.Proxies() {
		do(p)
	}
}

// over reports whether all faults have ended.
func (i *injector) over() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return time.Now().After(i.until) && (i.restore == nil || !i.restore.underWay())
}

// close prevents further restores and returns true, unless a restore is in progress. The next step
// collects the evidence, and a cluster that is down would provide none.
func (i *injector) close() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = i.restore == nil || !i.restore.underWay()
	return i.closed
}

// seen returns the writes that have been made so far, in order.
func (i *injector) seen() []Point {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]Point(nil), i.points...)
}

// missed returns the faults whose write did not occur.
func (i *injector) missed() []Fault {
	i.mu.Lock()
	defer i.mu.Unlock()
	var missed []Fault
	for _, f := range i.faults {
		if !i.hit[f] {
			missed = append(missed, f)
		}
	}
	return missed
}
