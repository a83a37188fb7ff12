package csidriver

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
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
	"github.com/xylem-io/xylem/internal/guarded/settling"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/index/registered"
	"github.com/xylem-io/xylem/internal/nodes"
	"github.com/xylem-io/xylem/internal/route"
)

const (
	// Name is the name of the controller.
	Name  = "csi_driver"
	actor = guarded.Actor("csi-driver")

	// reportAgain is how often the controller reports a foreign object that differs from the
	// required one. Until it is fixed, the scheduler may assign claims to host nodes.
	reportAgain = 5 * time.Minute
)

// Reconciler manages the CSIDriver objects.
type Reconciler struct {
	// Client reads the host's cache and writes to the host.
	Client client.Client
	// Recorder emits events on the CSIDriver.
	Recorder events.EventRecorder
}

// +kubebuilder:rbac:groups=storage.k8s.io,resources=csidrivers,verbs=list;watch;create
// +kubebuilder:rbac:groups=storage.k8s.io,resources=csidrivers,resourceNames=csi.xylem.io;mock.csi.virtual-kubelet.io,verbs=patch;delete
// +kubebuilder:rbac:groups=storage.k8s.io,resources=csinodes,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=cluster.xylem.io,resources=clusterregistrations,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager adds the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		Watches(&storagev1.CSIDriver{}, handler.EnqueueRequestsFromMapFunc(ours)).
		Watches(&storagev1.CSINode{}, handler.EnqueueRequestsFromMapFunc(both)).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(both), builder.WithPredicates(route.OfVirtualNodes(), route.Concerning(route.Relabelled))).
		Watches(&v1alpha1.ClusterRegistration{}, handler.EnqueueRequestsFromMapFunc(ofClasses), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Func(atStart)).
		Complete(settling.Reconciler(r))
}

func requestFor(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// atStart enqueues the requests at startup, even if the objects do not exist.
func atStart(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	for _, request := range both(ctx, nil) {
		queue.Add(request)
	}
	return nil
}

func ours(_ context.Context, driver client.Object) []reconcile.Request {
	if !slices.Contains(nodes.Drivers(), driver.GetName()) {
		return nil
	}
	return []reconcile.Request{requestFor(driver.GetName())}
}

// ofClasses enqueues the CSIDriver of Xylem's classes, which has the rules for namespaces.
func ofClasses(context.Context, client.Object) []reconcile.Request {
	return []reconcile.Request{requestFor(v1alpha1.ProvisionerName)}
}

// both enqueues both CSIDrivers, because each depends on the CSINodes of all virtual nodes.
func both(context.Context, client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range nodes.Drivers() {
		requests = append(requests, requestFor(name))
	}
	return requests
}

// Reconcile creates, patches or deletes one object as needed.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	driver, err := index.Find[storagev1.CSIDriver](ctx, r.Client, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	complete := false
	if preventable(driver) {
		if complete, err = r.complete(ctx); err != nil {
			return reconcile.Result{}, err
		}
	}
	rules := ""
	if tracked(request.Name) {
		if rules, err = r.rules(ctx); err != nil {
			return reconcile.Result{}, err
		}
	}
	host := guarded.NewRoot(r.Client, "", guarded.HostOnly{})
	switch d := decide(request.Name, driver, complete, rules); d.do {
	case nothing:
	case create:
		err = host.Create(ctx, actor, d.after)
	case patch:
		err = host.Patch(ctx, actor, driver, d.after)
	case adjust:
		err = host.AdjustCSIDriver(ctx, actor, driver, d.after)
	case remove:
		err = host.Delete(ctx, driver)
	case report:
		ctrl.LoggerFrom(ctx).Error(nil, "a CSIDriver that Xylem did not create differs from what Xylem needs: the scheduler may assign claims to the host's own nodes, or Pods may wait for volumes to be attached",
			"csiDriver", driver.Name, "wrong", d.wrong)
		contradicts(r.Recorder, driver, d.wrong)
		if d.after != nil {
			if err := host.AdjustCSIDriver(ctx, actor, driver, d.after); err != nil {
				return reconcile.Result{}, err
			}
		}
		return reconcile.Result{RequeueAfter: reportAgain}, nil
	}
	return reconcile.Result{}, client.IgnoreAlreadyExists(err) // the watch enqueues the existing object
}

// rules returns the rules for namespaces of all registrations.
func (r *Reconciler) rules(ctx context.Context) (string, error) {
	var all v1alpha1.ClusterRegistrationList
	if err := r.Client.List(ctx, &all, index.ReadOnly); err != nil {
		return "", fmt.Errorf("list the registered members: %w", err)
	}
	rules, complete := NamespaceRules(all.Items)
	if !complete {
		ctrl.LoggerFrom(ctx).Error(nil, "the rules in spec.namespaces of all ClusterRegistrations are too long for one object: the scheduler ignores some of them. Xylem does not push Pods that violate them. Use the same rules for more members")
	}
	return rules, nil
}

// complete reports whether every virtual node has a CSINode that names the drivers. The scheduler
// would not place Pods with volumes on a virtual node without such a CSINode.
func (r *Reconciler) complete(ctx context.Context) (bool, error) {
	virtual, err := registered.VirtualNodes(ctx, r.Client)
	if err != nil {
		return false, err
	}
	for i := range virtual {
		csiNode, err := index.Find[storagev1.CSINode](ctx, r.Client, index.Named(virtual[i].Name))
		if err != nil || csiNode == nil || !nodes.NamesDrivers(csiNode) {
			return false, err
		}
	}
	return true, nil
}

// contradicts emits an event on a foreign CSIDriver that differs from what Xylem needs.
func contradicts(recorder events.EventRecorder, driver *storagev1.CSIDriver, wrong string) {
	recorder.Eventf(driver, nil, corev1.EventTypeWarning, v1alpha1.ReasonNotOfXylem, "KeepCSIDriver",
		"Xylem did not create this CSIDriver, which differs from what Xylem needs (%s). Delete the CSIDriver, so that Xylem creates its own, or label it %s=%s", wrong, v1alpha1.LabelManagedBy, v1alpha1.ManagedByValue)
}
