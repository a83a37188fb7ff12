package backlog

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	// limit is how many volumes may wait for the PV controller while claims are placed as
	// they come. It binds five to seven a second by default, by its client's limit, and a
	// few times as many where that is raised.
	limit = 300
	// interval at which claims are let through that wait.
	interval = time.Second
	// more is how many at a time, of all members, are let through beyond what was bound
	// meanwhile, while few volumes wait: so it goes faster when the PV controller does.
	more = 10
	// anyway is after how long as many are let through of a member of which none was:
	// there may be no backlog but volumes that nobody will ever bind, and one that is
	// shows it.
	anyway = 10 * time.Second
	// patience is how long a claim waits before it is told so, and tellings how many are
	// at a time: these are writes to the host as well.
	patience = 30 * time.Second
	tellings = 5
	// remembered is of how many claims it is known that they were let through.
	remembered = 4096
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Gate is where claims wait to be placed in members, each named by its cluster ID.
type Gate struct {
	clock clock.WithTicker

	mu      sync.Mutex
	volumes volumes
	lanes   map[string]*lane
	passed  *lru.Cache // UIDs of claims that were let through
}

// lane of a member, for as long as its link lives.
type lane struct {
	registration string
	queue        queue
	line         line
	last         time.Time // when one was let through, or the line began
	half         int       // of a claim that is still to be let through
}

// New makes a gate that is open until Setup has been called.
func New(c clock.WithTicker) *Gate {
	return &Gate{clock: c, volumes: newVolumes(), lanes: map[string]*lane{}, passed: lru.New(remembered)}
}

// Setup has the gate told of the host's PVs; before the cache starts.
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
		g.mu.Lock()
		defer g.mu.Unlock()
		g.volumes.see(pv)
	}
}

func (g *Gate) forget(obj any) {
	if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	if pv, ok := obj.(*corev1.PersistentVolume); ok {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.volumes.waiting, pv.Name)
	}
}

// Source has a member's claims wait, and wakes them in its controller's queue, until the
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

// Turn says whether it is a claim's turn to be placed.
type Turn struct {
	// Come: it may be placed now. Else it is woken when it may.
	Come bool
	// Tell that it waits, now: Volumes of all members wait for the PV controller, and so
	// many Claims of its own wait with it.
	Tell            bool
	Volumes, Claims int
}

// Enter asks for a claim's turn to be placed in a member. Who has asked stays in line
// until the turn has come, or Leave.
func (g *Gate) Enter(member string, claim *corev1.PersistentVolumeClaim) Turn {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lanes[member]
	if _, passed := g.passed.Get(claim.UID); passed || l == nil {
		return Turn{Come: true}
	}
	key := client.ObjectKeyFromObject(claim)
	if w, waits := l.line.claims[key]; waits && w.uid == claim.UID {
		if !w.tell {
			return Turn{}
		}
		w.tell = false
		return Turn{Tell: true, Volumes: g.volumes.count().all(), Claims: l.line.len()}
	}
	if l.line.len() == 0 {
		if waiting := g.volumes.count(); waiting[member] < waiting.share(member) {
			return Turn{Come: true}
		}
		g.volumes.boundSince(member)
		l.last = g.clock.Now()
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

// Start lets claims through, and has them told, until the context ends.
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
	lines := 0
	for _, l := range g.lanes {
		if l.line.len() > 0 {
			lines++
		}
	}
	if lines == 0 {
		return
	}
	now, waiting := g.clock.Now(), g.volumes.count()
	few := waiting.all() < limit/2
	for member, l := range g.lanes {
		if l.line.len() == 0 {
			continue
		}
		bound := g.volumes.boundSince(member)
		n := l.due(bound, waiting[member], waiting.share(member))
		switch {
		case few:
			n = bound + bound/2 + max(1, more/lines)
		case n == 0 && now.Sub(l.last) >= anyway:
			n = more
		}
		for range n {
			w := l.line.next()
			if w == nil {
				break
			}
			l.last = now
			g.passed.Add(w.uid, true)
			l.wake(w)
		}
		l.show()
	}
	g.tell(now)
}

// due is how many of a member's claims are to be let through: as many as volumes of its
// were bound since the last time, half as many while too many of its wait, one more while
// others have taken its part.
func (l *lane) due(bound, waiting, share int) int {
	switch {
	case waiting > share:
		bound += l.half
		l.half = bound % 2
		return bound / 2
	case 2*waiting < share:
		return bound + 1
	}
	return bound
}

// tell wakes a few of those that wait, to be told so: in each namespace, those first
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
