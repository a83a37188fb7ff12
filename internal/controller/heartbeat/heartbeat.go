package heartbeat

import (
	"context"
	"errors"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

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
	// tick is the precision of the interval.
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

// Heartbeat renews the Leases.
type Heartbeat struct {
	// Cache of the host; Live reads and writes past it, whether or not this
	// replica leads.
	Cache client.Reader
	Live  client.Client
	// Identity of this process, unlike that of any other.
	Identity string
	// Clock is the real one unless given.
	Clock clock.PassiveClock

	// known are the Leases as last seen or written, by the names of their Nodes.
	known sync.Map
}

// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=kube-node-lease,verbs=get;create;patch

// SetupWithManager adds the controller, on every replica.
func (h *Heartbeat) SetupWithManager(mgr ctrl.Manager) error {
	if h.Clock == nil {
		h.Clock = clock.RealClock{}
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&corev1.Node{}, builder.WithPredicates(appears())).
		WithOptions(controller.Options{MaxConcurrentReconciles: parallel, NeedLeaderElection: ptr.To(false)}).
		Complete(h)
}

// appears admits that a virtual node is there which was not: all else that
// happens to one is seen when its next turn comes.
func appears() predicate.Predicate {
	virtual := func(obj client.Object) bool {
		node, ok := obj.(*corev1.Node)
		return ok && nodes.IsVirtual(node)
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return virtual(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return virtual(e.ObjectNew) && (!virtual(e.ObjectOld) || e.ObjectOld.GetUID() != e.ObjectNew.GetUID())
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// Reconcile renews one Node's Lease, and comes back for its next turn.
func (h *Heartbeat) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	node, err := index.Find[corev1.Node](ctx, h.Cache, request.NamespacedName)
	if err != nil || node == nil || !nodes.IsVirtual(node) {
		h.known.Delete(request.Name)
		return reconcile.Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	lease, err := h.beat(ctx, node)
	if err != nil {
		h.known.Delete(node.Name)
		// A conflict says that another replica was faster.
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !errors.Is(ctx.Err(), context.Canceled) {
			ctrl.LoggerFrom(ctx).Error(err, "renew the Lease of a virtual node", "node", node.Name)
		}
		return reconcile.Result{RequeueAfter: retry}, nil
	}
	h.known.Store(node.Name, lease)
	return reconcile.Result{RequeueAfter: untilNext(h.Clock.Now(), h.Identity, node.Name)}, nil
}

// beat renews one Lease, unless another replica has lately, and returns the
// Lease as it is then.
func (h *Heartbeat) beat(ctx context.Context, node *corev1.Node) (*coordinationv1.Lease, error) {
	// Counted for no member: a replica that does not lead never hears that one is gone.
	host := guarded.NewRoot(h.Live, "", guarded.HostOnly{})
	value, _ := h.known.Load(node.Name)
	known, _ := value.(*coordinationv1.Lease)
	// Another's is examined, our own renewed straight away.
	if !heldBy(known, h.Identity) || !owned(known, node) {
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
