package virtualnode

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/nodes"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
)

const (
	// DriverName is the name of the controller of CSIDrivers.
	DriverName  = "csi_driver"
	driverActor = guarded.Actor("csi-driver")

	// reportDriverAgain is how often the controller reports a foreign object that differs from the
	// required one. Until it is fixed, the scheduler may assign claims to host nodes.
	reportDriverAgain = 5 * time.Minute
)

// DriverReconciler manages the CSIDrivers.
type DriverReconciler struct {
	// Client reads the host's cache and writes to the host.
	Client client.Client
	// Recorder emits events on the CSIDriver.
	Recorder events.EventRecorder

	host *guarded.HostWriter
}

// +kubebuilder:rbac:groups=storage.k8s.io,resources=csidrivers,verbs=list;watch;create
// +kubebuilder:rbac:groups=storage.k8s.io,resources=csidrivers,resourceNames=csi.xylem.io;mock.csi.virtual-kubelet.io,verbs=patch;delete
// +kubebuilder:rbac:groups=storage.k8s.io,resources=csinodes,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=cluster.xylem.io,resources=clusterregistrations,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager adds the controller.
func (r *DriverReconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.host = guarded.NewHostWriter(r.Client, "", guarded.HostOnlyGuard{})
	return ctrl.NewControllerManagedBy(mgr).
		Named(DriverName).
		Watches(&storagev1.CSIDriver{}, handler.EnqueueRequestsFromMapFunc(sameDriver)).
		Watches(&storagev1.CSINode{}, handler.EnqueueRequestsFromMapFunc(allDrivers)).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(allDrivers), builder.WithPredicates(route.VirtualNodePredicate(), route.ConcernsPredicate(route.LabelsChanged))).
		Watches(&v1alpha1.ClusterRegistration{}, handler.EnqueueRequestsFromMapFunc(driverWithRules), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Func(enqueueDriversAtStart)).
		Complete(guarded.WrapReconciler(r))
}

// enqueueDriversAtStart enqueues the requests at startup, even if the objects do not exist.
func enqueueDriversAtStart(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	for _, request := range allDrivers(ctx, nil) {
		queue.Add(request)
	}
	return nil
}

func sameDriver(_ context.Context, driver client.Object) []reconcile.Request {
	if !slices.Contains(nodes.DriverNames(), driver.GetName()) {
		return nil
	}
	return []reconcile.Request{requestForDriver(driver.GetName())}
}

// driverWithRules enqueues the CSIDriver of Xylem's classes, which has the rules for namespaces.
func driverWithRules(context.Context, client.Object) []reconcile.Request {
	return []reconcile.Request{requestForDriver(v1alpha1.ProvisionerName)}
}

// allDrivers enqueues both CSIDrivers, because each depends on the CSINodes of all virtual nodes.
func allDrivers(context.Context, client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range nodes.DriverNames() {
		requests = append(requests, requestForDriver(name))
	}
	return requests
}

// Reconcile creates, patches or deletes one object as needed.
func (r *DriverReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	driver, err := index.FindObject[storagev1.CSIDriver](ctx, r.Client, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	complete := false
	if mayPreventScheduling(driver) {
		if complete, err = r.csiNodesComplete(ctx); err != nil {
			return reconcile.Result{}, err
		}
	}
	rules := ""
	if tracksCapacity(request.Name) {
		if rules, err = r.publishedRules(ctx); err != nil {
			return reconcile.Result{}, err
		}
	}
	d := decideDriver(request.Name, driver, complete, rules)
	switch d.do {
	case keepDriver:
	case createDriver:
		err = r.host.CreateOwned(ctx, driverActor, d.after)
	case patchDriver:
		err = r.host.PatchOwned(ctx, driverActor, driver, d.after)
	case adjustDriver:
		err = r.host.AdjustCSIDriver(ctx, driverActor, driver, d.after)
	case removeDriver:
		err = r.host.DeleteOwned(ctx, driver)
	case reportDriver:
		return reconcile.Result{RequeueAfter: reportDriverAgain}, r.report(ctx, driver, d)
	}
	return reconcile.Result{}, client.IgnoreAlreadyExists(err) // the watch enqueues the existing object
}

// report emits an event on a foreign CSIDriver that differs from what Xylem needs, and updates its rules for namespaces.
func (r *DriverReconciler) report(ctx context.Context, driver *storagev1.CSIDriver, d driverDecision) error {
	ctrl.LoggerFrom(ctx).Error(nil, "a CSIDriver that Xylem did not create differs from what Xylem needs: the scheduler may assign claims to the host's own nodes, or Pods may wait for volumes to be attached",
		"csiDriver", driver.Name, "wrong", d.differs)
	reportForeignDriver(r.Recorder, driver, d.differs)
	if d.after == nil {
		return nil
	}
	return r.host.AdjustCSIDriver(ctx, driverActor, driver, d.after)
}

// publishedRules returns the rules for namespaces of all registrations.
func (r *DriverReconciler) publishedRules(ctx context.Context) (string, error) {
	var all v1alpha1.ClusterRegistrationList
	if err := r.Client.List(ctx, &all, index.ReadOnly); err != nil {
		return "", fmt.Errorf("list the registered members: %w", err)
	}
	rules, complete := placement.PublishedNamespaceRules(all.Items)
	if !complete {
		ctrl.LoggerFrom(ctx).Error(nil, "the rules in spec.namespaces of all ClusterRegistrations are too long for one object: the scheduler ignores some of them. Xylem does not push Pods that violate them. Use the same rules for more members")
	}
	return rules, nil
}

// csiNodesComplete reports whether every virtual node has a CSINode that names the drivers. The scheduler
// would not place Pods with volumes on a virtual node without such a CSINode.
func (r *DriverReconciler) csiNodesComplete(ctx context.Context) (bool, error) {
	virtual, err := index.ListVirtualNodes(ctx, r.Client)
	if err != nil {
		return false, err
	}
	for i := range virtual {
		csiNode, err := index.FindObject[storagev1.CSINode](ctx, r.Client, index.ClusterScopedKey(virtual[i].Name))
		if err != nil || csiNode == nil || !nodes.CSINodeNamesAllDrivers(csiNode) {
			return false, err
		}
	}
	return true, nil
}
