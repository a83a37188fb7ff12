package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/nodes"
)

const (
	// Name of the controller.
	Name  = "heartbeat"
	actor = guarded.Actor("heartbeat")

	// leaseDuration is what a kubelet declares (nodeLeaseDurationSeconds); the
	// node-monitor-grace-period is chosen to go with it.
	leaseDuration = 40 * time.Second
	// interval is a kubelet's: a quarter of the duration, so that three renewals
	// in a row may fail.
	interval = leaseDuration / 4
	// fresh: a Lease that was renewed less than this ago by another replica is
	// left alone. Two thirds of the interval leave room for clocks that differ
	// and still end with one replica renewing.
	fresh = interval * 2 / 3
	// tick is how often it is looked which Leases are due; the precision of the
	// interval, and the latency of a new Node's first Lease.
	tick = time.Second
	// retry is the pause after a renewal that failed: soon enough for several
	// attempts within the duration, seldom enough not to burden a sick API server.
	retry = 2 * time.Second
	// callTimeout bounds a renewal, so that a call that hangs costs one attempt.
	callTimeout = 5 * time.Second
	// parallel renewals: at 10 ms a call they serve 16,000 nodes in an interval,
	// and so many calls may hang before others wait.
	parallel = 16
)

// Heartbeat renews the Leases; add it to the manager as a Runnable.
type Heartbeat struct {
	// Cache of the host; Live reads and writes past it, whether or not this
	// replica leads.
	Cache client.Reader
	Live  client.Client
	// Identity of this process, unlike that of any other.
	Identity string
	// Clock is the real one unless given.
	Clock clock.WithTicker

	mu    sync.Mutex
	beats map[types.UID]*beat
	slots chan struct{}
}

// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=kube-node-lease,verbs=get;create;patch

// SetupWithManager adds it.
func (h *Heartbeat) SetupWithManager(mgr ctrl.Manager) error {
	if err := mgr.Add(h); err != nil {
		return fmt.Errorf("add %s: %w", Name, err)
	}
	return nil
}

// NeedLeaderElection is false: every replica can renew.
func (h *Heartbeat) NeedLeaderElection() bool { return false }

// Start renews until the context ends, and returns when the last call has.
func (h *Heartbeat) Start(ctx context.Context) error {
	if h.Clock == nil {
		h.Clock = clock.RealClock{}
	}
	h.beats, h.slots = map[types.UID]*beat{}, make(chan struct{}, parallel)
	ctx = ctrl.LoggerInto(ctx, ctrl.LoggerFrom(ctx).WithName(Name))
	var calls sync.WaitGroup
	defer calls.Wait()
	ticker := h.Clock.NewTicker(tick)
	defer ticker.Stop()
	for {
		h.round(ctx, &calls)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// round starts what is due, as far as there are free slots. It never waits for
// a call: what finds no slot is due again at the next tick.
func (h *Heartbeat) round(ctx context.Context, calls *sync.WaitGroup) {
	var list corev1.NodeList
	if err := h.Cache.List(ctx, &list, client.MatchingLabels{
		v1alpha1.LabelVirtualNode: "true", v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue,
	}); err != nil {
		if ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Error(err, "list the virtual nodes")
		}
		return
	}
	for _, due := range h.due(list.Items, h.Clock.Now()) {
		select {
		case h.slots <- struct{}{}:
		default:
			h.done(due.beat, nil, 0)
			continue
		}
		calls.Add(1)
		go func() {
			defer calls.Done()
			defer func() { <-h.slots }()
			h.renew(ctx, due.node, due.beat)
		}()
	}
}

type dueBeat struct {
	node *corev1.Node
	beat *beat
}

// due are the Nodes whose Leases are to be looked at now; it marks them as
// being so, and forgets the Nodes that are gone.
func (h *Heartbeat) due(list []corev1.Node, now time.Time) []dueBeat {
	h.mu.Lock()
	defer h.mu.Unlock()
	var due []dueBeat
	there := make(map[types.UID]struct{}, len(list))
	for i := range list {
		node := &list[i]
		if !nodes.IsVirtual(node) {
			continue
		}
		there[node.UID] = struct{}{}
		b := h.beats[node.UID]
		if b == nil {
			b = &beat{}
			h.beats[node.UID] = b
		}
		if !b.busy && !now.Before(b.next) {
			b.busy = true
			due = append(due, dueBeat{node, b})
		}
	}
	for uid, b := range h.beats {
		if _, ok := there[uid]; !ok && !b.busy {
			delete(h.beats, uid)
		}
	}
	return due
}

// done notes the Lease as it is now known, nil if unknown, and when to look again.
func (h *Heartbeat) done(b *beat, lease *coordinationv1.Lease, after time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b.busy = false
	if lease != nil || after > 0 {
		b.lease = lease
	}
	b.next = h.Clock.Now().Add(after)
}

func (h *Heartbeat) renew(ctx context.Context, node *corev1.Node, b *beat) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	lease, err := h.beat(ctx, node, b.lease)
	if err != nil {
		h.done(b, nil, retry)
		// A conflict says that another replica was faster.
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !errors.Is(ctx.Err(), context.Canceled) {
			ctrl.LoggerFrom(ctx).Error(err, "renew the Lease of a virtual node", "node", node.Name)
		}
		return
	}
	h.done(b, lease, untilNext(h.Clock.Now(), h.Identity, node.Name))
}

// beat renews one Lease, unless another replica has lately, and returns the
// Lease as it is then. known is the Lease as last seen here, if at all.
func (h *Heartbeat) beat(ctx context.Context, node *corev1.Node, known *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	// Counted for no member: a replica that does not lead never hears that one is gone.
	host := guarded.NewRoot(h.Live, "", guarded.HostOnly{})
	if !heldBy(known, h.Identity) { // another's is looked at, our own renewed straight away
		var err error
		key := client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: node.Name}
		if known, err = index.Find[coordinationv1.Lease](ctx, h.Live, key); err != nil {
			return nil, err
		}
	}
	now := metav1.NewMicroTime(h.Clock.Now())
	switch d := decide(node, known, h.Identity, now); d.do {
	case leave:
		return known, nil
	case create:
		return d.lease, host.CreateLease(ctx, actor, node, d.lease)
	default:
		return d.lease, host.PatchLease(ctx, actor, node, known, d.lease)
	}
}
