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
	// admittedCountsFor is how long an admitted claim counts while the host has no volume for it. It is short
	// because a slow provisioner does not slow down binding in the host.
	admittedCountsFor = 10 * time.Second
	// bindingCountsFor is how long a volume that waits for the PV controller counts. The controller examines
	// all volumes every 15 s, so a volume that waits much longer may never be bound.
	bindingCountsFor = 5 * time.Minute
	// admissionInterval is the delay between admissions of waiting claims.
	admissionInterval = time.Second
	// unreportedWait is how long a claim waits before Xylem reports the wait. reportsPerInterval limits the
	// number of reports per interval, because they are also writes to the host.
	unreportedWait     = 30 * time.Second
	reportsPerInterval = 5
)

type workQueue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Queue delays claims until they may be placed in their member. Cluster IDs identify members.
type Queue struct {
	clock clock.WithTicker
	limit int

	mu     sync.Mutex
	queues map[string]*memberQueue
	// inProgress contains, for each member, the UIDs of unbound claims that were admitted or have a
	// volume, with the time until which they count.
	inProgress map[string]map[types.UID]time.Time
}

// memberQueue is a member's queue. It exists as long as the member's link does.
type memberQueue struct {
	registration string
	workQueue    workQueue
	waiting      waitingClaims
}

// New creates a Queue that lets up to limit claims be in progress. The Queue counts volumes once WatchHostVolumes
// has been called.
func New(c clock.WithTicker, limit int) *Queue {
	return &Queue{clock: c, limit: limit, queues: map[string]*memberQueue{}, inProgress: map[string]map[types.UID]time.Time{}}
}

// WatchHostVolumes makes the queue watch the host's PVs. Call it before the cache starts.
func (g *Queue) WatchHostVolumes(ctx context.Context, host cache.Cache) error {
	informer, err := host.GetInformer(ctx, &corev1.PersistentVolume{})
	if err != nil {
		return fmt.Errorf("watch the host's PVs: %w", err)
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    g.observe,
		UpdateFunc: func(_, obj any) { g.observe(obj) },
		DeleteFunc: g.observeDeletedVolume,
	}); err != nil {
		return fmt.Errorf("watch the host's PVs: %w", err)
	}
	return nil
}

func (g *Queue) observe(obj any) {
	if pv, ok := obj.(*corev1.PersistentVolume); ok {
		g.record(pv, awaitsBinding(pv))
	}
}

func (g *Queue) observeDeletedVolume(obj any) {
	if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	if pv, ok := obj.(*corev1.PersistentVolume); ok {
		g.record(pv, false)
	}
}

// record records whether a member's host PV waits for the PV controller.
func (g *Queue) record(pv *corev1.PersistentVolume, waits bool) {
	member := pv.Labels[v1alpha1.LabelClusterID]
	if member == "" || pv.Spec.ClaimRef == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if waits {
		g.admit(member, pv.Spec.ClaimRef.UID, bindingCountsFor)
	} else {
		delete(g.inProgress[member], pv.Spec.ClaimRef.UID)
	}
}

func (g *Queue) admit(member string, claim types.UID, counts time.Duration) {
	if g.inProgress[member] == nil {
		g.inProgress[member] = map[types.UID]time.Time{}
	}
	g.inProgress[member][claim] = g.clock.Now().Add(counts)
}

// awaitsBinding reports whether a PV was created for a claim but is not bound to the claim yet.
func awaitsBinding(pv *corev1.PersistentVolume) bool {
	if pv.DeletionTimestamp != nil || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID == "" {
		return false
	}
	phase := pv.Status.Phase
	return phase == "" || phase == corev1.VolumePending || phase == corev1.VolumeAvailable
}

// countInProgress returns the number of claims in progress, for one member and for all members.
func (g *Queue) countInProgress(member string) (own, all int) {
	now := g.clock.Now()
	for of, claims := range g.inProgress {
		maps.DeleteFunc(claims, func(_ types.UID, until time.Time) bool { return now.After(until) })
		if all += len(claims); len(claims) == 0 {
			delete(g.inProgress, of)
		}
	}
	return len(g.inProgress[member]), all
}

// remainingCapacity returns how many more of a member's claims may be in progress: the part of the limit
// that other members leave unused, but at least an equal share among the members with claims in
// progress. Thus a member whose volumes cannot be bound does not block other members' claims (I7).
func (g *Queue) remainingCapacity(member string) int {
	own, all := g.countInProgress(member)
	members := len(g.inProgress)
	if own == 0 {
		members++
	}
	return max(g.limit-(all-own), g.limit/members, 1) - own
}

// MemberSource queues a member's claims until the context ends, and enqueues admitted claims in the queue
// of the member's controller. Metrics use the registration's name.
func (g *Queue) MemberSource(member, registration string) source.Source {
	return source.Func(func(ctx context.Context, q workQueue) error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if ctx.Err() != nil {
			return nil // do not replace the queue of the member's next link
		}
		if before := g.queues[member]; before != nil {
			heldBackClaims.DeleteLabelValues(before.registration)
		}
		l := &memberQueue{registration: registration, workQueue: q, waiting: newWaitingClaims()}
		g.queues[member] = l
		l.reportLength()
		context.AfterFunc(ctx, func() { g.closeMemberQueue(member, l) })
		return nil
	})
}

func (g *Queue) closeMemberQueue(member string, l *memberQueue) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.queues[member] == l { // otherwise, the queue belongs to the member's next link
		delete(g.queues, member)
		heldBackClaims.DeleteLabelValues(l.registration)
	}
}

// Admission is the decision for a claim.
type Admission struct {
	// Admitted reports whether the claim may be placed now. If not, Queue enqueues the claim once it
	// may be placed.
	Admitted bool
	// Report requests that the caller report the wait now. Volumes is the number of claims in
	// progress in all members, and Claims is the number of claims that wait for the same member.
	Report          bool
	Volumes, Claims int
}

// Admit requests admission of a claim to a member. The claim stays queued until it is admitted, or
// until Remove is called.
func (g *Queue) Admit(member string, claim *corev1.PersistentVolumeClaim) Admission {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.queues[member]
	if until, passed := g.inProgress[member][claim.UID]; l == nil || passed && !g.clock.Now().After(until) {
		return Admission{Admitted: true}
	}
	key := client.ObjectKeyFromObject(claim)
	if w, waits := l.waiting.claims[key]; waits && w.uid == claim.UID {
		if !w.reportDue {
			return Admission{}
		}
		w.reportDue = false
		_, all := g.countInProgress(member)
		return Admission{Report: true, Volumes: all, Claims: l.waiting.len()}
	}
	if l.waiting.len() == 0 && g.remainingCapacity(member) > 0 {
		g.admit(member, claim.UID, admittedCountsFor)
		return Admission{Admitted: true}
	}
	l.waiting.add(&waitingClaim{claim: key, uid: claim.UID, since: g.clock.Now()})
	l.reportLength()
	return Admission{}
}

// Remove removes a claim that must no longer be placed in a member from its queue.
func (g *Queue) Remove(member string, claim types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if l := g.queues[member]; l != nil && l.waiting.remove(claim) {
		l.reportLength()
	}
}

// Start admits claims and triggers reports of long waits until the context ends.
func (g *Queue) Start(ctx context.Context) error {
	ticker := g.clock.NewTicker(admissionInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
			g.admitWaiting()
		}
	}
}

// admitWaiting admits claims up to the limit.
func (g *Queue) admitWaiting() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for member, l := range g.queues {
		if l.waiting.len() == 0 {
			continue
		}
		for range g.remainingCapacity(member) {
			w := l.waiting.next()
			if w == nil {
				break
			}
			g.admit(member, w.uid, admittedCountsFor)
			l.enqueue(w)
		}
		l.reportLength()
	}
	g.enqueueWaitReports(g.clock.Now())
}

// enqueueWaitReports enqueues a few of the waiting claims, so that their controller reports the wait. In
// each namespace, it begins with the claims at the end of the queue.
func (g *Queue) enqueueWaitReports(now time.Time) {
	reported := 0
	for _, l := range g.queues {
		for w := range l.waiting.longest() {
			if w.selectedForReport || now.Sub(w.since) < unreportedWait {
				continue
			}
			if reported++; reported > reportsPerInterval {
				return
			}
			w.selectedForReport, w.reportDue = true, true
			l.enqueue(w)
		}
	}
}

func (l *memberQueue) enqueue(w *waitingClaim) {
	l.workQueue.Add(reconcile.Request{NamespacedName: w.claim})
}

func (l *memberQueue) reportLength() {
	heldBackClaims.WithLabelValues(l.registration).Set(float64(l.waiting.len()))
}
