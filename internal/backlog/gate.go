package backlog

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

const (
	// DefaultLimit is the default of the maximum number of claims in progress. The PV controller binds
	// five to seven claims a second with its client's default rate limit, and a few times as many with
	// a higher limit.
	DefaultLimit = 300
	// making is how long an admitted claim counts while the host has no volume for it. It is short
	// because a slow provisioner does not slow down binding in the host.
	making = 10 * time.Second
	// binding is how long a volume that waits for the PV controller counts. The controller examines
	// all volumes every 15 s, so a volume that waits much longer may never be bound.
	binding = 5 * time.Minute
	// interval is the delay between admissions of waiting claims.
	interval = time.Second
	// patience is how long a claim waits before Xylem reports the wait. reportsAtOnce limits the
	// number of reports per interval, because they are also writes to the host.
	patience      = 30 * time.Second
	reportsAtOnce = 5
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Gate queues claims until they may be placed in their member. Cluster IDs identify members.
type Gate struct {
	clock clock.WithTicker
	limit int

	mu    sync.Mutex
	lanes map[string]*lane
	// underWay contains, for each member, the UIDs of unbound claims that were admitted or have a
	// volume, with the time until which they count.
	underWay map[string]map[types.UID]time.Time
}

// lane is a member's queue. It exists as long as the member's link does.
type lane struct {
	registration string
	queue        queue
	line         line
}

// New creates a Gate that lets up to limit claims be in progress. The Gate counts volumes once Setup
// has been called.
func New(c clock.WithTicker, limit int) *Gate {
	return &Gate{clock: c, limit: limit, lanes: map[string]*lane{}, underWay: map[string]map[types.UID]time.Time{}}
}

// Setup makes the gate watch the host's PVs. Call it before the cache starts.
func (g *Gate) Setup(ctx context.Context, host cache.Cache) error {
	informer, err := host.GetInformer(ctx, &corev1.PersistentVolume{})
	if err != nil {
		return fmt.Errorf("watch the host's PVs: %w", err)
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    g.see,
		UpdateFunc: func(_, obj any) { g.see(obj) },
		DeleteFunc: g.forget,
	}); err != nil {
		return fmt.Errorf("watch the host's PVs: %w", err)
	}
	return nil
}

func (g *Gate) see(obj any) {
	if pv, ok := obj.(*corev1.PersistentVolume); ok {
		g.note(pv, awaitsBinding(pv))
	}
}

func (g *Gate) forget(obj any) {
	if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	if pv, ok := obj.(*corev1.PersistentVolume); ok {
		g.note(pv, false)
	}
}

// note records whether a member's host PV waits for the PV controller.
func (g *Gate) note(pv *corev1.PersistentVolume, waits bool) {
	member := pv.Labels[v1alpha1.LabelClusterID]
	if member == "" || pv.Spec.ClaimRef == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if waits {
		g.letThrough(member, pv.Spec.ClaimRef.UID, binding)
	} else {
		delete(g.underWay[member], pv.Spec.ClaimRef.UID)
	}
}

func (g *Gate) letThrough(member string, claim types.UID, counts time.Duration) {
	if g.underWay[member] == nil {
		g.underWay[member] = map[types.UID]time.Time{}
	}
	g.underWay[member][claim] = g.clock.Now().Add(counts)
}

// awaitsBinding reports whether a PV was created for a claim but is not bound to the claim yet.
func awaitsBinding(pv *corev1.PersistentVolume) bool {
	if pv.DeletionTimestamp != nil || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID == "" {
		return false
	}
	phase := pv.Status.Phase
	return phase == "" || phase == corev1.VolumePending || phase == corev1.VolumeAvailable
}

// count returns the number of claims in progress, for one member and for all members.
func (g *Gate) count(member string) (own, all int) {
	now := g.clock.Now()
	for of, claims := range g.underWay {
		maps.DeleteFunc(claims, func(_ types.UID, until time.Time) bool { return now.After(until) })
		if all += len(claims); len(claims) == 0 {
			delete(g.underWay, of)
		}
	}
	return len(g.underWay[member]), all
}

// capacity returns how many more of a member's claims may be in progress: the part of the limit
// that other members leave unused, but at least an equal share among the members with claims in
// progress. Thus a member whose volumes cannot be bound does not block other members' claims (I7).
func (g *Gate) capacity(member string) int {
	own, all := g.count(member)
	members := len(g.underWay)
	if own == 0 {
		members++
	}
	return max(g.limit-(all-own), g.limit/members, 1) - own
}

// Source queues a member's claims until the context ends, and enqueues admitted claims in the queue
// of the member's controller. Metrics use the registration's name.
func (g *Gate) Source(member, registration string) source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if ctx.Err() != nil {
			return nil // do not replace the queue of the member's next link
		}
		if before := g.lanes[member]; before != nil {
			heldBack.DeleteLabelValues(before.registration)
		}
		l := &lane{registration: registration, queue: q, line: newLine()}
		g.lanes[member] = l
		l.show()
		context.AfterFunc(ctx, func() { g.close(member, l) })
		return nil
	})
}

func (g *Gate) close(member string, l *lane) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lanes[member] == l { // otherwise, the queue belongs to the member's next link
		delete(g.lanes, member)
		heldBack.DeleteLabelValues(l.registration)
	}
}

// Turn is the gate's decision for a claim.
type Turn struct {
	// Come reports whether the claim may be placed now. If not, the gate enqueues the claim once it
	// may be placed.
	Come bool
	// Report requests that the caller report the wait now. Volumes is the number of claims in
	// progress in all members, and Claims is the number of claims that wait for the same member.
	Report          bool
	Volumes, Claims int
}

// Enter requests admission of a claim to a member. The claim stays queued until it is admitted, or
// until Leave is called.
func (g *Gate) Enter(member string, claim *corev1.PersistentVolumeClaim) Turn {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lanes[member]
	if until, passed := g.underWay[member][claim.UID]; l == nil || passed && !g.clock.Now().After(until) {
		return Turn{Come: true}
	}
	key := client.ObjectKeyFromObject(claim)
	if w, waits := l.line.claims[key]; waits && w.uid == claim.UID {
		if !w.report {
			return Turn{}
		}
		w.report = false
		_, all := g.count(member)
		return Turn{Report: true, Volumes: all, Claims: l.line.len()}
	}
	if l.line.len() == 0 && g.capacity(member) > 0 {
		g.letThrough(member, claim.UID, making)
		return Turn{Come: true}
	}
	l.line.add(&waiter{claim: key, uid: claim.UID, since: g.clock.Now()})
	l.show()
	return Turn{}
}

// Leave removes a claim that must no longer be placed in a member from its queue.
func (g *Gate) Leave(member string, claim types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if l := g.lanes[member]; l != nil && l.line.remove(claim) {
		l.show()
	}
}

// Start admits claims and triggers reports of long waits until the context ends.
func (g *Gate) Start(ctx context.Context) error {
	ticker := g.clock.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
			g.step()
		}
	}
}

// step admits claims up to the limit.
func (g *Gate) step() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for member, l := range g.lanes {
		if l.line.len() == 0 {
			continue
		}
		for range g.capacity(member) {
			w := l.line.next()
			if w == nil {
				break
			}
			g.letThrough(member, w.uid, making)
			l.wake(w)
		}
		l.show()
	}
	g.reportWaits(g.clock.Now())
}

// reportWaits enqueues a few of the waiting claims, so that their controller reports the wait. In
// each namespace, it begins with the claims at the end of the queue.
func (g *Gate) reportWaits(now time.Time) {
	reported := 0
	for _, l := range g.lanes {
		for w := range l.line.longest() {
			if w.reported || now.Sub(w.since) < patience {
				continue
			}
			if reported++; reported > reportsAtOnce {
				return
			}
			w.reported, w.report = true, true
			l.wake(w)
		}
	}
}

func (l *lane) wake(w *waiter) { l.queue.Add(reconcile.Request{NamespacedName: w.claim}) }

func (l *lane) show() { heldBack.WithLabelValues(l.registration).Set(float64(l.line.len())) }
