package csinode

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/guarded/settling"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/index/registered"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/nodes"
	"github.com/xylem-io/xylem/internal/route"
)

const (
	// Name is the name of the controller.
	Name  = "csi_node"
	actor = guarded.Actor("csi-node")
)

// Reconciler manages the CSINodes of virtual nodes.
type Reconciler struct {
	// Client reads the host's cache, which contains only Xylem's CSINodes, and writes to the host.
	// Live bypasses the cache.
	Client client.Client
	Live   client.Reader
	// Recorder emits events on Nodes.
	Recorder events.EventRecorder
	// Clock provides the times of conditions.
	Clock clock.PassiveClock
	// Recheck is the interval at which the controller checks whether the name of a foreign CSINode is
	// free again.
	Recheck time.Duration
}

// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes/status,verbs=patch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=csinodes,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=csidrivers,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager adds the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&corev1.Node{}, builder.WithPredicates(route.OfVirtualNodes())).
		Watches(&storagev1.CSINode{}, &handler.EnqueueRequestForObject{}).
		Watches(&storagev1.CSIDriver{}, handler.EnqueueRequestsFromMapFunc(r.ofDriver)).
		WithEventFilter(route.Changed()).
		Complete(settling.Reconciler(r))
}

// ofDriver enqueues all virtual nodes, because the CSIDriver shows whether the host's scheduler
// reads CSINodes.
func (r *Reconciler) ofDriver(ctx context.Context, driver client.Object) []reconcile.Request {
	if driver.GetName() != v1alpha1.ProvisionerName {
		return nil
	}
	list, err := registered.VirtualNodes(ctx, r.Client)
	return route.RequestsFor(ctx, list, err, func(*corev1.Node) bool { return true })
}

// Reconcile reconciles the CSINode of one virtual node, and the Node's condition about the CSINode.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.observe(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	d := decide(o)
	host := guarded.NewRoot(r.Client, "", guarded.HostOnly{})
	switch d.do {
	case nothing:
	case create:
		err = host.Create(ctx, actor, d.after)
	case patch:
		err = host.Patch(ctx, actor, o.csiNode, d.after)
	}
	switch {
	case report.Rejected(err):
		d.problem = notWritten(request.Name, err)
	case apierrors.IsAlreadyExists(err):
		return reconcile.Result{}, settling.Unseen(err)
	case err != nil:
		return reconcile.Result{}, err
	}
	if reporting := r.report(ctx, host, o, d.problem); reporting != nil {
		return reconcile.Result{}, reporting
	}
	return reconcile.Result{RequeueAfter: d.again}, err
}

func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName) (observed, error) {
	o := observed{recheck: r.Recheck}
	var err error
	if o.node, err = index.Find[corev1.Node](ctx, r.Client, key); err != nil || o.node == nil || !nodes.IsVirtual(o.node) {
		return observed{}, err
	}
	if o.csiNode, err = index.Find[storagev1.CSINode](ctx, r.Client, key); err != nil {
		return o, err
	}
	if o.csiNode == nil { // the cache lacks foreign CSINodes
		if o.csiNode, err = index.Find[storagev1.CSINode](ctx, r.Live, key); err != nil {
			return o, err
		}
	}
	driver, err := index.Find[storagev1.CSIDriver](ctx, r.Client, index.Named(v1alpha1.ProvisionerName))
	o.counts = nodes.ReadsCSINodes(driver)
	return o, err
}

// report sets or removes the Node's condition, and emits an event if the problem is new.
func (r *Reconciler) report(ctx context.Context, host *guarded.Root, o observed, p *problem) error {
	if o.node == nil {
		return nil
	}
	if !o.counts {
		p = nil
	}
	after := withCondition(o.node, p, metav1.NewTime(r.Clock.Now()))
	if after == nil {
		return nil
	}
	was := nodes.Condition(o.node, v1alpha1.NodeCSINode)
	if err := host.PatchNodeStatus(ctx, actor, o.node, after); err != nil {
		return err
	}
	if p != nil && (was == nil || was.Reason != p.reason) {
		r.Recorder.Eventf(o.node, nil, corev1.EventTypeWarning, p.reason, "CreateCSINode", "%s", p.message)
	}
	return nil
}
