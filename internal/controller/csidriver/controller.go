package csidriver

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
)

const (
	// Name is the name of the controller.
	Name  = "csi_driver"
	actor = guarded.Actor("csi-driver")

	// reportAgain is how often the controller reports a foreign object that differs from the
	// required one. Until it is fixed, the scheduler may assign claims to nodes of the host.
	reportAgain = 5 * time.Minute
)

// Reconciler manages the CSIDriver object.
type Reconciler struct {
	// Client reads the host's cache and writes to the host.
	Client client.Client
	// Recorder emits events on the CSIDriver.
	Recorder events.EventRecorder
}

// +kubebuilder:rbac:groups=storage.k8s.io,resources=csidrivers,verbs=list;watch;create
// +kubebuilder:rbac:groups=storage.k8s.io,resources=csidrivers,resourceNames=csi.xylem.io,verbs=patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager adds the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		Watches(&storagev1.CSIDriver{}, handler.EnqueueRequestsFromMapFunc(ours)).
		WatchesRawSource(source.Func(atStart)).
		Complete(guarded.Settling(r))
}

var theRequest = reconcile.Request{NamespacedName: types.NamespacedName{Name: v1alpha1.ProvisionerName}}

// atStart enqueues the request even if the object does not exist.
func atStart(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	queue.Add(theRequest)
	return nil
}

func ours(_ context.Context, driver client.Object) []reconcile.Request {
	if driver.GetName() != v1alpha1.ProvisionerName {
		return nil
	}
	return []reconcile.Request{theRequest}
}

// Reconcile creates, patches or deletes the object as needed.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	driver, err := index.Find[storagev1.CSIDriver](ctx, r.Client, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	host := guarded.NewRoot(r.Client, "", guarded.HostOnly{})
	switch d := decide(driver); d.do {
	case nothing:
	case create:
		err = host.Create(ctx, actor, d.after)
	case patch:
		err = host.Patch(ctx, actor, driver, d.after)
	case remove:
		err = host.Delete(ctx, driver)
	case report:
		ctrl.LoggerFrom(ctx).Error(nil, "Xylem did not create the CSIDriver, and it differs from what Xylem needs: the scheduler may assign claims to nodes of the host, or Pods may wait for volumes to be attached",
			"csiDriver", driver.Name, "wrong", d.wrong)
		contradicts(r.Recorder, driver, d.wrong)
		return reconcile.Result{RequeueAfter: reportAgain}, nil
	}
	return reconcile.Result{}, client.IgnoreAlreadyExists(err) // the watch enqueues the existing object
}

// contradicts emits an event on a foreign CSIDriver that differs from what Xylem needs.
func contradicts(recorder events.EventRecorder, driver *storagev1.CSIDriver, wrong string) {
	recorder.Eventf(driver, nil, corev1.EventTypeWarning, v1alpha1.ReasonNotOfXylem, "KeepCSIDriver",
		"Xylem did not create this CSIDriver, and it differs from what Xylem needs (%s). Delete it, so that Xylem creates its own, or label it %s=%s", wrong, v1alpha1.LabelManagedBy, v1alpha1.ManagedByValue)
}
