package reflectedclass

import (
	"context"
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/guarded/settling"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/reflection"
)

const (
	// Name is the name of the controller.
	Name  = "reflected_class"
	actor = guarded.Actor("reflected-class")
)

// Reconciler manages the host's reflected classes, and reports invalid parameters of Xylem's classes.
type Reconciler struct {
	// Client reads the host's cache and writes to the host.
	Client client.Client
	// Recorder emits events on StorageClasses.
	Recorder events.EventRecorder
	// Classes contains the members' classes.
	Classes *reflection.MemberClasses

	root *guarded.Root
	// problems contains the last reported problems, by class and registration. It needs no lock,
	// because there is one worker.
	problems map[string]map[string]reflection.Problem
	// left contains the classes that are being re-created, until they exist again. If the creation
	// fails after the deletion, the labels and annotations that others set exist only here.
	left map[string]*storagev1.StorageClass
	// reported contains the UIDs of the classes whose parameters were reported as invalid, by name.
	reported map[string]types.UID

	host *guarded.Root
}

// RBAC cannot distinguish reflected classes from others. guarded.Root therefore writes only to
// classes with the labels of reflected classes, and config/policy limits the manager's account in
// the same way.
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=cluster.xylem.io,resources=clusterregistrations,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager adds the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.problems, r.left = map[string]map[string]reflection.Problem{}, map[string]*storagev1.StorageClass{}
	r.reported, r.host = map[string]types.UID{}, guarded.NewRoot(r.Client, "", guarded.HostOnly{})
	return ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		Watches(&storagev1.StorageClass{}, &handler.EnqueueRequestForObject{}).
		Watches(&v1alpha1.ClusterRegistration{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, cr client.Object) []reconcile.Request {
			return r.ofRegistration(ctx, cr.GetName())
		}), builder.WithPredicates(changedForClasses())).
		WatchesRawSource(r.Classes.Offers(r.ofRegistration)).
		Complete(settling.Reconciler(r))
}

// Reconcile creates, updates, re-creates or deletes the host's class of one name, and reports if it is invalid.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	class, err := index.Find[storagev1.StorageClass](ctx, r.Client, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	r.reportInvalidParameters(request.Name, class)
	view, err := r.view(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	current := class
	if current == nil {
		current = r.left[request.Name] // while the class is being re-created, no other member may take it over
	}
	ruling := view.Rule(request.Name, current)
	r.report(request.Name, ruling.Problems)
	if len(ruling.Offering) == 0 || class != nil && class.DeletionTimestamp == nil {
		delete(r.left, request.Name)
	}
	err = r.act(ctx, class, decide(request.Name, class, r.left[request.Name], ruling))
	return reconcile.Result{}, client.IgnoreAlreadyExists(err) // if the class already exists, the watch enqueues it
}

func (r *Reconciler) act(ctx context.Context, class *storagev1.StorageClass, d decision) error {
	switch d.do {
	case nothing:
	case create:
		return r.host.Create(ctx, actor, d.after)
	case patch:
		return r.host.Patch(ctx, actor, class, d.after)
	case remake:
		r.left[class.Name] = d.after.DeepCopy() // record the class before the deletion, because the response may be lost
		if err := r.host.Delete(ctx, class); err != nil {
			return err
		}
		return r.host.Create(ctx, actor, d.after)
	case remove:
		return r.host.Delete(ctx, class)
	}
	return nil
}

// report records the problems with a class, and enqueues the registrations whose problems have
// changed.
func (r *Reconciler) report(name string, problems map[string]reflection.Problem) {
	was := r.problems[name]
	for registration := range concerned(was, problems) {
		r.Classes.Ruled(registration)
	}
	delete(r.problems, name)
	if len(problems) > 0 {
		r.problems[name] = problems
	}
}

// concerned returns the registrations whose problems differ.
func concerned(was, is map[string]reflection.Problem) map[string]struct{} {
	all := map[string]struct{}{}
	for registration := range was {
		all[registration] = struct{}{}
	}
	for registration, problem := range is {
		if before, had := was[registration]; had && before == problem {
			delete(all, registration)
		} else {
			all[registration] = struct{}{}
		}
	}
	return all
}

func (r *Reconciler) view(ctx context.Context) (reflection.View, error) {
	var registrations v1alpha1.ClusterRegistrationList
	if err := r.Client.List(ctx, &registrations); err != nil {
		return reflection.View{}, fmt.Errorf("list registrations: %w", err)
	}
	return reflection.View{Classes: r.Classes, Registrations: registrations.Items}, nil
}

// ofRegistration enqueues the classes that a registration offers or has offered.
func (r *Reconciler) ofRegistration(ctx context.Context, registration string) []reconcile.Request {
	view, err := r.view(ctx)
	var classes storagev1.StorageClassList
	if err == nil {
		err = r.Client.List(ctx, &classes)
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not list registrations and the host's StorageClasses")
		return nil
	}
	var requests []reconcile.Request
	for _, name := range view.Names(registration, classes.Items) {
		requests = append(requests, reconcile.Request{NamespacedName: index.Named(name)})
	}
	return requests
}

// changedForClasses ignores updates of registrations that do not affect their classes.
func changedForClasses() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.ClusterRegistration)
		after, okay := e.ObjectNew.(*v1alpha1.ClusterRegistration)
		return !ok || !okay || before.Generation != after.Generation || before.UID != after.UID ||
			reflection.Reflects(before) != reflection.Reflects(after) || before.Status.ClusterID != after.Status.ClusterID
	}}
}
