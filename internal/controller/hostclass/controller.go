package hostclass

import (
	"context"
	"errors"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/internal/guarded/settling"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostclass"
)

// Name is the name of the controller.
const Name = "host_class"

// Reconciler reports invalid Xylem classes in the host.
type Reconciler struct {
	// Client reads the host's cache.
	Client client.Reader
	// Recorder emits events on StorageClasses.
	Recorder events.EventRecorder

	// reported contains the UIDs of the reported classes, by name. It needs no lock, because there is
	// one worker.
	reported map[string]types.UID
}

// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager adds the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.reported = map[string]types.UID{}
	return ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		Watches(&storagev1.StorageClass{}, &handler.EnqueueRequestForObject{}).
		Complete(settling.Reconciler(r))
}

// Reconcile validates one class.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	class, err := index.Find[storagev1.StorageClass](ctx, r.Client, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if problem := wrong(class); problem == nil {
		delete(r.reported, request.Name)
	} else if r.reported[request.Name] != class.UID {
		r.reported[request.Name] = class.UID
		cannotBeFollowed(r.Recorder, class, problem)
	}
	return reconcile.Result{}, nil
}

// wrong returns the problem with the class, or nil if it is valid or not one of Xylem's.
func wrong(class *storagev1.StorageClass) *mirror.Refusal {
	if !hostclass.Own(class) {
		return nil
	}
	_, err := hostclass.Read(class)
	var refusal *mirror.Refusal
	errors.As(err, &refusal)
	return refusal
}
