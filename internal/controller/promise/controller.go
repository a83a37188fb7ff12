package promise

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/news"
	"github.com/xylem-io/xylem/internal/route"
)

const (
	// Name is the name of the controller.
	Name  = "promise"
	actor = guarded.Actor("promise")
	// workers is the number of concurrent reconciles. Each promise takes one write, and
	// guarded.HostWriter allows the same number of concurrent writes.
	workers = 4
	// diskReportDelay is the delay before a missing disk is reported. If the claim has a Pod, the disk
	// usually exists by then, and an earlier report would cost an unnecessary write.
	diskReportDelay = 5 * time.Second
)

// Reconciler creates promises for claims.
type Reconciler struct {
	// Client reads the host's cache and writes to the host.
	Client client.Client
	// Recorder emits events on claims.
	Recorder events.EventRecorder
	// Clock provides the times of conditions.
	Clock clock.PassiveClock

	root *guarded.HostWriter
	news *news.StateMemory // about waiting Pods, by UID
}

// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;list;watch;create
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims/status,verbs=patch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager adds the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.root, r.news = guarded.NewHostWriter(r.Client, "", guarded.HostOnlyGuard{}), news.New(r.Clock)
	return ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		Watches(&corev1.PersistentVolumeClaim{}, route.PacedHandler(claimRequeueDelay, claimToRequest)).
		Watches(&corev1.PersistentVolume{}, route.PacedHandler(claimRequeueDelay, promiseToClaim)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(podToClaims), builder.WithPredicates(route.SinceStartPredicate(), onlyCreations)).
		Watches(&storagev1.StorageClass{}, handler.EnqueueRequestsFromMapFunc(r.classToWaitingClaims)).
		WithEventFilter(route.ChangedPredicate()).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(guarded.WrapReconciler(r))
}

// Reconcile takes the next step for one claim's promise.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.observeClaim(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := r.executeDecision(ctx, o, decidePromiseAction(o)); err != nil {
		return reconcile.Result{}, err
	}
	again, err := r.emitOnPods(ctx, o.claim)
	return reconcile.Result{RequeueAfter: again}, err
}

func (r *Reconciler) observeClaim(ctx context.Context, key types.NamespacedName) (observed, error) {
	var o observed
	var err error
	if o.claim, err = index.FindObject[corev1.PersistentVolumeClaim](ctx, r.Client, key); err != nil || o.claim == nil {
		return o, err
	}
	name := o.claim.Spec.VolumeName
	if name == "" {
		name = hostpv.PromiseName(o.claim.UID)
	}
	if o.volume, err = index.FindObject[corev1.PersistentVolume](ctx, r.Client, index.ClusterScopedKey(name)); err != nil || o.volume != nil {
		return o, err
	}
	o.class, err = index.FindObject[storagev1.StorageClass](ctx, r.Client, index.ClusterScopedKey(hostpv.ClassNameOf(o.claim)))
	return o, err
}

func (r *Reconciler) executeDecision(ctx context.Context, o observed, d decision) error {
	switch d := d.(type) {
	case doNothing:
		return nil
	case createPromise:
		err := r.root.CreateOwned(ctx, actor, d.promise)
		if apierrors.IsAlreadyExists(err) {
			return nil // the name contains the claim's UID, so the PV is this promise, and the cache will contain it soon
		}
		return err
	case showCondition:
		shown := report.ClaimConditionApplyBody(o.claim, v1alpha1.ClaimPromise, d.status, d.reason, d.message, r.Clock.Now())
		if shown == nil {
			return nil
		}
		if err := r.root.ApplyStatus(ctx, actor, o.claim, shown); err != nil {
			return err
		}
		if d.reason == v1alpha1.ReasonBroken {
			r.emitPromiseBroken(o.claim, d.message)
		}
		return nil
	}
	return fmt.Errorf("unknown decision %T", d)
}

// onlyCreations accepts only the events of new objects.
var onlyCreations = predicate.Funcs{
	UpdateFunc: func(event.UpdateEvent) bool { return false },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}

// podToClaims enqueues the claims of a new Pod, because it may wait for a disk that is not provisioned.
func podToClaims(_ context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil
	}
	return route.ClaimRequestsOf(pod)
}

// claimRequeueDelay returns the delay until a claim is reconciled after it or its promise has changed. The
// delay is 0 if a promise must be created, or if a final or failed state must be reported or no
// longer applies. In all other cases, the delay keeps this controller from interfering with the
// writes of the controllers that bind the claim.
func claimRequeueDelay(before, after client.Object) time.Duration {
	if after == nil || beginsToRequestPromise(before, after) || isConclusiveState(before) || isConclusiveState(after) {
		return 0
	}
	return diskReportDelay
}

// beginsToRequestPromise reports whether the claim may request a promise that it did not request before.
func beginsToRequestPromise(before, after client.Object) bool {
	claim, ok := after.(*corev1.PersistentVolumeClaim)
	if !ok || claim.Spec.VolumeName != "" {
		return false
	}
	was, ok := before.(*corev1.PersistentVolumeClaim)
	return !ok || hostpv.ClassNameOf(was) != hostpv.ClassNameOf(claim)
}

// isConclusiveState reports whether a claim or promise, which may be nil, is in a final or failed state,
// not in progress.
func isConclusiveState(state client.Object) bool {
	switch o := state.(type) {
	case *corev1.PersistentVolumeClaim:
		return o.Status.Phase == corev1.ClaimLost || report.PromiseHasDisk(o) || report.ClaimConditionProblem(o, v1alpha1.ClaimPlaced) != nil
	case *corev1.PersistentVolume:
		return !hostpv.IsUnfulfilledPromise(o)
	}
	return false
}

// claimToRequest enqueues a claim that is unbound or bound to a promise.
func claimToRequest(_ context.Context, obj client.Object) []reconcile.Request {
	claim, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok || claim.Spec.VolumeName != "" && !hostpv.IsPromiseName(claim.Spec.VolumeName) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(claim)}}
}

// promiseToClaim enqueues a promise's claim.
func promiseToClaim(_ context.Context, obj client.Object) []reconcile.Request {
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok || !hostpv.IsPromise(pv) || pv.Spec.ClaimRef == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: hostpv.ClaimRefKey(pv)}}
}

// classToWaitingClaims enqueues the waiting claims of a Xylem class.
func (r *Reconciler) classToWaitingClaims(ctx context.Context, obj client.Object) []reconcile.Request {
	class, ok := obj.(*storagev1.StorageClass)
	if !ok || !hostpv.IsXylemClass(class) {
		return nil
	}
	claims, err := index.WaitingClaimsOfClass(ctx, r.Client, class.Name)
	return route.RequestsFor(ctx, claims, err, nil)
}
