package virtualnode

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
	// HeartbeatName is the name of the controller of Leases.
	HeartbeatName  = "heartbeat"
	heartbeatActor = guarded.Actor("heartbeat")

	// leaseDuration is the kubelet's default (nodeLeaseDurationSeconds), which matches the
	// node-monitor-grace-period.
	leaseDuration = 40 * time.Second
	// renewInterval is a quarter of the duration, as in the kubelet, so that three renewals in a
	// row may fail.
	renewInterval = leaseDuration / 4
	// freshLease is the age below which a replica does not renew another replica's Lease. Two
	// thirds of the interval tolerate clock differences and still let one replica do all
	// renewals.
	freshLease = renewInterval * 2 / 3
	// renewPrecision is the precision of the interval.
	renewPrecision = time.Second
	// renewRetry is the delay after a failed renewal. It allows several attempts within the
	// duration without overloading a struggling API server.
	renewRetry = 2 * time.Second
	// renewTimeout bounds a renewal, so that a call that hangs costs only one attempt.
	renewTimeout = 5 * time.Second
	// parallelRenewals is the number of concurrent renewals. At 10 ms per call, they serve 16,000
	// nodes in an interval. Up to this number of calls may hang before others are delayed.
	parallelRenewals = 16
)

// Heartbeat renews the Leases.
type Heartbeat struct {
	// Cache reads the host's cache. Live bypasses it and works on every replica.
	Cache client.Reader
	Live  client.Client
	// Identity is unique to this process.
	Identity string
	// Clock defaults to the real clock.
	Clock clock.PassiveClock

	// knownLeases maps the name of each Node to its Lease as last read or written.
	knownLeases sync.Map
}

// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=kube-node-lease,verbs=get;create;patch

// SetupWithManager adds the controller. It runs on every replica.
func (h *Heartbeat) SetupWithManager(mgr ctrl.Manager) error {
	if h.Clock == nil {
		h.Clock = clock.RealClock{}
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(HeartbeatName).
		For(&corev1.Node{}, builder.WithPredicates(becomesVirtualNode())).
		WithOptions(controller.Options{MaxConcurrentReconciles: parallelRenewals, NeedLeaderElection: ptr.To(false)}).
		Complete(h)
}

// becomesVirtualNode admits the events in which a virtual node is created or re-created, or in which a
// Node becomes one. The periodic checks detect all other changes.
func becomesVirtualNode() predicate.Predicate {
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

// Reconcile renews one Node's Lease and schedules the next check.
func (h *Heartbeat) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	node, err := index.FindObject[corev1.Node](ctx, h.Cache, request.NamespacedName)
	if err != nil || node == nil || !nodes.IsVirtual(node) {
		h.knownLeases.Delete(request.Name)
		return reconcile.Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	lease, err := h.renewLease(ctx, node)
	if err != nil {
		h.knownLeases.Delete(node.Name)
		// On a conflict, another replica was faster.
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !errors.Is(ctx.Err(), context.Canceled) {
			ctrl.LoggerFrom(ctx).Error(err, "could not renew the Lease of a virtual node", "node", node.Name)
		}
		return reconcile.Result{RequeueAfter: renewRetry}, nil
	}
	h.knownLeases.Store(node.Name, lease)
	return reconcile.Result{RequeueAfter: timeToNextRenewal(h.Clock.Now(), h.Identity, node.Name)}, nil
}

// renewLease renews one Lease, unless another replica did so recently. It returns the resulting
// Lease.
func (h *Heartbeat) renewLease(ctx context.Context, node *corev1.Node) (*coordinationv1.Lease, error) {
	// Each call has its own writer, because a writer allows only a few writes at a time. Do not count
	// this write in a member's metrics: a replica that is not the leader would never delete them.
	host := guarded.NewHostWriter(h.Live, "", guarded.HostOnlyGuard{})
	value, _ := h.knownLeases.Load(node.Name)
	known, _ := value.(*coordinationv1.Lease)
	// Read another replica's Lease before renewing it. Renew this replica's own Lease without
	// reading it first.
	if !leaseHeldBy(known, h.Identity) || !leaseOwnedBy(known, node) {
		var err error
		key := client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: node.Name}
		if known, err = index.FindObject[coordinationv1.Lease](ctx, h.Live, key); err != nil {
			return nil, err
		}
	}
	after := leaseToWrite(node, known, h.Identity, metav1.NewMicroTime(h.Clock.Now()))
	switch {
	case after == nil:
		return known, nil
	case known == nil:
		return after, host.CreateNodeLease(ctx, heartbeatActor, node, after)
	}
	return after, host.PatchNodeLease(ctx, heartbeatActor, node, known, after)
}
