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

	// reportedProblems contains the last reported problems, by class and registration. It needs no lock,
	// because there is one worker.
	reportedProblems map[string]map[string]reflection.Problem
	// beingRecreated contains the classes that are being re-created, until they exist again. If the creation
	// fails after the deletion, the labels and annotations that others set exist only here.
	beingRecreated map[string]*storagev1.StorageClass
	// reportedUIDs contains the UIDs of the classes whose parameters were reported as invalid, by name.
	reportedUIDs map[string]types.UID

	host *guarded.HostWriter
}

// RBAC cannot distinguish reflected classes from others. guarded.HostWriter therefore writes only to
// classes with the labels of reflected classes, and config/policy limits the manager's account in
// the same way.
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=cluster.xylem.io,resources=clusterregistrations,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager adds the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.reportedProblems, r.beingRecreated = map[string]map[string]reflection.Problem{}, map[string]*storagev1.StorageClass{}
	r.reportedUIDs, r.host = map[string]types.UID{}, guarded.NewHostWriter(r.Client, "", guarded.HostOnlyGuard{})
	return ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		Watches(&storagev1.StorageClass{}, &handler.EnqueueRequestForObject{}).
		Watches(&v1alpha1.ClusterRegistration{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, cr client.Object) []reconcile.Request {
			return r.registrationToClasses(ctx, cr.GetName())
		}), builder.WithPredicates(changedForClasses())).
		WatchesRawSource(r.Classes.OffersSource(r.registrationToClasses)).
		Complete(guarded.WrapReconciler(r))
}

// Reconcile creates, updates, re-creates or deletes the host's class of one name, and reports if it is invalid.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	class, err := index.FindObject[storagev1.StorageClass](ctx, r.Client, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	r.reportInvalidParameters(request.Name, class)
	view, err := r.readReflectionView(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	current := class
	if current == nil {
		current = r.beingRecreated[request.Name] // while the class is being re-created, no other member may take it over
	}
	ruling := view.RuleOnClass(request.Name, current)
	r.recordProblems(request.Name, ruling.Problems)
	if len(ruling.Offering) == 0 || class != nil && class.DeletionTimestamp == nil {
		delete(r.beingRecreated, request.Name)
	}
	err = r.executeDecision(ctx, class, decideClassAction(request.Name, class, r.beingRecreated[request.Name], ruling))
	return reconcile.Result{}, client.IgnoreAlreadyExists(err) // if the class already exists, the watch enqueues it
}

func (r *Reconciler) executeDecision(ctx context.Context, class *storagev1.StorageClass, d decision) error {
	switch d.do {
	case doNothing:
	case createClass:
		return r.host.CreateOwned(ctx, actor, d.after)
	case patchClass:
		return r.host.PatchOwned(ctx, actor, class, d.after)
	case recreateClass:
		r.beingRecreated[class.Name] = d.after.DeepCopy() // record the class before the deletion, because the response may be lost
		if err := r.host.DeleteOwned(ctx, class); err != nil {
			return err
		}
		return r.host.CreateOwned(ctx, actor, d.after)
	case deleteClass:
		return r.host.DeleteOwned(ctx, class)
	}
	return nil
}

// recordProblems records the problems with a class, and enqueues the registrations whose problems have
// changed.
func (r *Reconciler) recordProblems(name string, problems map[string]reflection.Problem) {
	was := r.reportedProblems[name]
	for registration := range registrationsWithChanges(was, problems) {
		r.Classes.EnqueueRulingReports(registration)
	}
	delete(r.reportedProblems, name)
	if len(problems) > 0 {
		r.reportedProblems[name] = problems
	}
}

// registrationsWithChanges returns the registrations whose problems differ.
func registrationsWithChanges(was, is map[string]reflection.Problem) map[string]struct{} {
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

func (r *Reconciler) readReflectionView(ctx context.Context) (reflection.View, error) {
	var registrations v1alpha1.ClusterRegistrationList
	if err := r.Client.List(ctx, &registrations); err != nil {
		return reflection.View{}, fmt.Errorf("list registrations: %w", err)
	}
	return reflection.View{Classes: r.Classes, Registrations: registrations.Items}, nil
}

// registrationToClasses enqueues the classes that a registration offers or has offered.
func (r *Reconciler) registrationToClasses(ctx context.Context, registration string) []reconcile.Request {
	view, err := r.readReflectionView(ctx)
	var classes storagev1.StorageClassList
	if err == nil {
		err = r.Client.List(ctx, &classes)
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not list registrations and the host's StorageClasses")
		return nil
	}
	var requests []reconcile.Request
	for _, name := range view.ClassNamesFor(registration, classes.Items) {
		requests = append(requests, reconcile.Request{NamespacedName: index.ClusterScopedKey(name)})
	}
	return requests
}

// changedForClasses ignores updates of registrations that do not affect their classes.
func changedForClasses() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.ClusterRegistration)
		after, okay := e.ObjectNew.(*v1alpha1.ClusterRegistration)
		return !ok || !okay || before.Generation != after.Generation || before.UID != after.UID ||
			reflection.IsReflectionEnabled(before) != reflection.IsReflectionEnabled(after) || before.Status.ClusterID != after.Status.ClusterID
	}}
}
