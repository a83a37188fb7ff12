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
	// limit is how many claims may be on their way at a time. The PV controller binds five to
	// seven a second by default, by its client's limit, and a few times as many where that is
	// raised.
	limit = 300
	// making is how long a claim that was let through counts while the host has no volume for
	// it: a provisioner that is slow has nothing to do with how fast the host binds.
	making = 10 * time.Second
	// binding is how long a volume counts that waits for the PV controller, which looks at all
	// of them every 15 s: there are volumes that nobody will ever bind.
	binding = 5 * time.Minute
	// interval at which claims are admitted that wait.
	interval = time.Second
	// patience is how long a claim waits before Xylem reports it, and tellings how many are
	// at a time: these are writes to the host as well.
	patience = 30 * time.Second
	tellings = 5
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Gate is where claims wait to be placed in members, each named by its cluster ID.
type Gate struct {
	clock clock.WithTicker

	mu    sync.Mutex
	lanes map[string]*lane
	// underWay are the claims of each member, by UID, that were let through or have a volume,
	// and are not bound: until when they count.
	underWay map[string]map[types.UID]time.Time
}

// lane of a member, for as long as its link lives.
type lane struct {
	registration string
	queue        queue
	line         line
}

// New creates a gate, which counts volumes once Setup has been called.
func New(c clock.WithTicker) *Gate {
	return &Gate{clock: c, lanes: map[string]*lane{}, underWay: map[string]map[types.UID]time.Time{}}
}

// Setup has the gate follow the host's PVs. Call it before the cache starts.
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

// note whether a host PV of a member waits for the PV controller.
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

// awaitsBinding reports whether a PV was created for a claim that it is not bound to yet.
func awaitsBinding(pv *corev1.PersistentVolume) bool {
	if pv.DeletionTimestamp != nil || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID == "" {
		return false
	}
	phase := pv.Status.Phase
	return phase == "" || phase == corev1.VolumePending || phase == corev1.VolumeAvailable
}

// count the claims on their way that still count, of one member and of all.
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

// room is how many more claims of a member may be on their way: what others leave of the
// limit, and its part among those that have any at the least. So one whose volumes cannot
// be bound holds no other member's claims back (I7).
func (g *Gate) room(member string) int {
	own, all := g.count(member)
	members := len(g.underWay)
	if own == 0 {
		members++
	}
	return max(limit-(all-own), limit/members, 1) - own
}

// Source has a member's claims wait, and enqueues them in its controller's queue, until the
// context ends. Its registration is what metrics call it.
func (g *Gate) Source(member, registration string) source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if ctx.Err() != nil {
			return nil // its next link may be there already
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
	if g.lanes[member] == l { // else its next link is there already
		delete(g.lanes, member)
		heldBack.DeleteLabelValues(l.registration)
	}
}

// Turn reports whether it is a claim's turn to be placed.
type Turn struct {
	// Come: it may be placed now. Else it is enqueued when it may.
	Come bool
	// Tell that it waits, now: so many Volumes of all members are on their way, and so many
	// Claims of its own wait with it.
	Tell            bool
	Volumes, Claims int
}

// Enter asks for a claim's turn to be placed in a member. Who has asked stays in line
// until the turn has come, or Leave.
func (g *Gate) Enter(member string, claim *corev1.PersistentVolumeClaim) Turn {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lanes[member]
	if until, passed := g.underWay[member][claim.UID]; l == nil || passed && !g.clock.Now().After(until) {
		return Turn{Come: true}
	}
	key := client.ObjectKeyFromObject(claim)
	if w, waits := l.line.claims[key]; waits && w.uid == claim.UID {
		if !w.tell {
			return Turn{}
		}
		w.tell = false
		_, all := g.count(member)
		return Turn{Tell: true, Volumes: all, Claims: l.line.len()}
	}
	if l.line.len() == 0 && g.room(member) > 0 {
		g.letThrough(member, claim.UID, making)
		return Turn{Come: true}
	}
	l.line.add(&waiter{claim: key, uid: claim.UID, since: g.clock.Now()})
	l.show()
	return Turn{}
}

// Leave takes a claim out of the line that is not to be placed in a member any more.
func (g *Gate) Leave(member string, claim types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if l := g.lanes[member]; l != nil && l.line.remove(claim) {
		l.show()
	}
}

// Start lets claims through, and has them reported, until the context ends.
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

// step lets the claims through whose turn it is.
func (g *Gate) step() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for member, l := range g.lanes {
		if l.line.len() == 0 {
			continue
		}
		for range g.room(member) {
			w := l.line.next()
			if w == nil {
				break
			}
			g.letThrough(member, w.uid, making)
			l.wake(w)
		}
		l.show()
	}
	g.tell(g.clock.Now())
}

// tell enqueues a few of those that wait, to report it: in each namespace, those first
// that will wait longest.
func (g *Gate) tell(now time.Time) {
	told := 0
	for _, l := range g.lanes {
		for w := range l.line.longest() {
			if w.told || now.Sub(w.since) < patience {
				continue
			}
			if told++; told > tellings {
				return
			}
			w.told, w.tell = true, true
			l.wake(w)
		}
	}
}

func (l *lane) wake(w *waiter) { l.queue.Add(reconcile.Request{NamespacedName: w.claim}) }

func (l *lane) show() { heldBack.WithLabelValues(l.registration).Set(float64(l.line.len())) }
