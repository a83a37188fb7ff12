package hostvolume

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
)

const (
	// Name is the name of the controller.
	Name  = "host_volume"
	actor = guarded.Actor("host-volume")
)

// Reconciler reconciles host PVs that an admin abandons, and promises that no claim needs.
type Reconciler struct {
	// Client reads the host's cache and writes to the host; Live bypasses the cache.
	Client client.Client
	Live   client.Reader
	// Recorder emits events on PVs and registrations.
	Recorder events.EventRecorder
	// Records stores which volumes were abandoned.
	Records *fencing.HostRecords

	once sync.Once
	root *guarded.HostWriter
}

// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;patch

// SetupWithManager adds the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(mgr).Named(Name)
	for _, src := range r.EventSources(mgr.GetCache()) {
		b = b.WatchesRawSource(src)
	}
	return b.Complete(guarded.WrapReconciler(r))
}

// EventSources returns the sources of the controller's requests, from the host's cache.
func (r *Reconciler) EventSources(host cache.Cache) []source.Source {
	return []source.Source{
		source.Kind[client.Object](host, &corev1.PersistentVolume{}, &handler.EnqueueRequestForObject{}, predicate.NewPredicateFuncs(mayNeedStep), route.ChangedPredicate()),
		source.Kind[client.Object](host, &corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(claimToRequests(r.Client)), route.SinceStartPredicate(), route.ChangedPredicate()),
		source.Kind[client.Object](host, &v1alpha1.ClusterRegistration{}, handler.EnqueueRequestsFromMapFunc(registrationToRequests(r.Client)), clusterSetChanged()),
	}
}

// Reconcile takes the next step for one host PV, if this controller owns it.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	s, err := r.observeVolume(ctx, request.NamespacedName)
	if err != nil || s == nil {
		return reconcile.Result{}, err
	}
	if clusterID, _, asks := hostpv.RequestedImport(s.Host); asks {
		return reconcile.Result{}, r.reportStrayImport(ctx, s.Host, clusterID)
	}
	return reconcile.Result{}, r.executeStep(ctx, s.Host, lifecycle.NextPlan(s).StepOwnedBy(lifecycle.HostVolume))
}

// reportStrayImport reports an admin's host PV for a volume of an unregistered cluster, because no
// member's controller does.
func (r *Reconciler) reportStrayImport(ctx context.Context, pv *corev1.PersistentVolume, clusterID string) error {
	registrations, err := index.RegistrationsOfCluster(ctx, r.Client, clusterID)
	if err == nil && len(registrations) == 0 && pv.DeletionTimestamp == nil {
		r.emitStrayImport(pv, clusterID)
	}
	return err
}

// writer returns the client that writes to the host. All requests share it, because it limits the rate of writes, and
// remembers which states they replaced.
func (r *Reconciler) writer() *guarded.HostWriter {
	r.once.Do(func() { r.root = guarded.NewHostWriter(r.Client, "", guarded.HostOnlyGuard{}) })
	return r.root
}

// executeStep takes the step that the plan has for this controller.
func (r *Reconciler) executeStep(ctx context.Context, pv *corev1.PersistentVolume, step lifecycle.Step) error {
	host := r.writer()
	switch step {
	case lifecycle.None:
		return nil
	case lifecycle.DeleteHost:
		return r.deleteAbandonedVolume(ctx, host, pv)
	case lifecycle.AbandonHost:
		return r.releaseAbandonedVolume(ctx, host, pv)
	case lifecycle.FreePromise:
		return r.freeAbandonedPromise(ctx, host, pv)
	case lifecycle.DropPromise:
		return r.dropUnneededPromise(ctx, host, pv)
	case lifecycle.DropFinalizer:
		if e, proven := proof.DroppableIfNoDisk(r.newProver().Clock, pv); proven {
			return client.IgnoreNotFound(dropFinalizers(ctx, host, pv, e))
		}
		return nil
	default:
		return fmt.Errorf("step %s does not belong to %s", step, Name)
	}
}

// deleteAbandonedVolume deletes an abandoned host PV. If a finalizer of Xylem keeps the PV, the deletion's event
// enqueues it again, and release records the volume. Otherwise, deleteAbandonedVolume does.
func (r *Reconciler) deleteAbandonedVolume(ctx context.Context, host *guarded.HostWriter, pv *corev1.PersistentVolume) error {
	kept := controllerutil.ContainsFinalizer(pv, v1alpha1.FinalizerLeafVolume) || len(hostpv.MembersWithCopies(pv)) > 0
	if !kept {
		if err := r.recordAbandoned(ctx, host, pv, clusterOfVolume(pv)); err != nil {
			return err
		}
	}
	e, abandoned := proof.DroppableIfAbandoned(r.newProver().Clock, pv)
	if !abandoned {
		return nil
	}
	if err := host.DeleteHostVolume(ctx, pv, e); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !kept {
		r.emitVolumeAbandoned(pv, clusterOfVolume(pv))
	}
	return nil
}

// dropUnneededPromise deletes a promise, and then removes Xylem's finalizer, if live reads prove that no member
// has it and no claim needs it. So no member will get it.
func (r *Reconciler) dropUnneededPromise(ctx context.Context, host *guarded.HostWriter, pv *corev1.PersistentVolume) error {
	e, proven, err := proof.ProvePromiseUnneeded(ctx, r.newProver(), pv, func(claim *corev1.PersistentVolumeClaim) bool { return volume.PromiseStillWanted(pv, claim) })
	if err != nil || !proven {
		return err
	}
	if pv.DeletionTimestamp == nil {
		return client.IgnoreNotFound(host.DeleteHostVolume(ctx, pv, e))
	}
	return client.IgnoreNotFound(dropFinalizers(ctx, host, pv, e))
}

// releaseAbandonedVolume records that the volume that a host PV represents is abandoned, and then releases it.
func (r *Reconciler) releaseAbandonedVolume(ctx context.Context, host *guarded.HostWriter, pv *corev1.PersistentVolume) error {
	clusterID := clusterOfVolume(pv)
	if err := r.recordAbandoned(ctx, host, pv, clusterID); err != nil {
		return err
	}
	e, abandoned := proof.DroppableIfAbandoned(r.newProver().Clock, pv)
	if !abandoned {
		return nil
	}
	if err := dropFinalizers(ctx, host, pv, e); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.emitVolumeAbandoned(pv, clusterID)
	return nil
}

// recordAbandoned records that the volume that a host PV represents is abandoned, unless no member has it.
func (r *Reconciler) recordAbandoned(ctx context.Context, host *guarded.HostWriter, pv *corev1.PersistentVolume, clusterID string) error {
	if clusterID == "" {
		return nil
	}
	return r.Records.RecordAbandoned(ctx, host, clusterID, fmt.Sprintf("%s: %s=true", hostpv.DescribeVolume(pv), v1alpha1.AnnotationAbandon))
}

// clusterOfVolume returns the ID of the cluster that has the volume or the promise that a host PV represents.
func clusterOfVolume(pv *corev1.PersistentVolume) string {
	if clusterID, _, _, ours := hostpv.LeafOfHostVolume(pv); ours {
		return clusterID
	}
	return pv.Labels[v1alpha1.LabelClusterID]
}

// freeAbandonedPromise takes a promise from its member, which may be lost, so that another member can
// fulfill it. It changes the claim first, and then the promise. Objects in the member remain, and
// become orphans once the member is connected again.
func (r *Reconciler) freeAbandonedPromise(ctx context.Context, host *guarded.HostWriter, pv *corev1.PersistentVolume) error {
	clusterID := clusterOfVolume(pv)
	claim, err := r.readLiveClaim(ctx, pv)
	if err != nil {
		return err
	}
	if clusterID == "" && claim != nil { // the claim was placed in the member, but the promise had no label yet
		clusterID = claim.Annotations[v1alpha1.AnnotationPlacedIn]
	}
	if _, same, err := r.newProver().ProveHostUnchanged(ctx, pv); err != nil || !same {
		return err
	}
	if err := r.recordAbandoned(ctx, host, pv, clusterID); err != nil {
		return err
	}
	e, abandoned := proof.DroppableIfAbandoned(r.newProver().Clock, pv)
	if !abandoned {
		return nil
	}
	if err := host.FreePromise(ctx, actor, pv, claim, clusterID, e); err != nil {
		return err
	}
	r.emitVolumeAbandoned(pv, clusterID)
	return nil
}

// readLiveClaim returns the claim of a host PV from a live read, or nil if it was deleted.
func (r *Reconciler) readLiveClaim(ctx context.Context, pv *corev1.PersistentVolume) (*corev1.PersistentVolumeClaim, error) {
	claim, err := claimNamedByVolume(ctx, r.Live, pv)
	if claim != nil && claim.UID != pv.Spec.ClaimRef.UID {
		claim = nil
	}
	return claim, err
}

func (r *Reconciler) newProver() proof.Prover {
	return proof.Prover{HostLive: r.Live, Clock: clock.RealClock{}}
}

// dropFinalizers removes Xylem's finalizers. Members delete their copies of an abandoned shared volume when they
// are connected. The volume's data is kept.
func dropFinalizers(ctx context.Context, host *guarded.HostWriter, pv *corev1.PersistentVolume, e proof.DroppableVolume) error {
	after := hostpv.VolumeWithoutCopies(pv)
	controllerutil.RemoveFinalizer(after, v1alpha1.FinalizerLeafVolume)
	return host.DropHostVolume(ctx, actor, pv, after, e)
}
