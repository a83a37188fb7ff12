package leafpv

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/news"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

const (
	// Name is the name of the controller.
	Name  = "leaf_pv"
	actor = guarded.Actor("leaf-pv")
	// workers is the number of volumes of one member that are mirrored concurrently.
	workers = 8
)

// reconciler reconciles a member's PVs. Its requests contain their names in the member.
type reconciler struct {
	*member.Link
	Options
	news *news.StateMemory // about admins' host PVs, by UID
	// unreached measures how long the nodes that were selected for claims have not reached their volumes, by leaf PV.
	unreached *news.Durations[string]
}

// Options configures the controller.
type Options struct {
	// Options contains the OrphanTracker, which also records volumes that may be orphans.
	observe.Options
	// Mirrors contains the host PVs that were created for claims.
	Mirrors *account.MirrorTracker
}

// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;list;watch;create;patch;delete

// Setup adds the controller to a member's link.
func Setup(link *member.Link, o Options) error {
	r := &reconciler{Link: link, Options: o, news: news.New(link.Clock), unreached: news.NewDurations[string](link.Clock)}
	return link.AddController(Name, workers, r,
		route.DelayUnlessUrgent(leafVolumeChangeUrgent, link.LeafObjectSource(&corev1.PersistentVolume{}, requestForObject, route.ConcernsPredicate(route.VolumeChanged))),
		link.LeafObjectSource(&corev1.PersistentVolumeClaim{}, claimToVolume, route.ConcernsPredicate(route.LeafClaimChanged)),
		route.DelayUnlessUrgent(route.NeverUrgent, link.RootObjectSource(&corev1.PersistentVolume{}, link.OnlyOwnObjects(r.hostVolumeToLeafVolumes), route.VolumeChanged)),
		link.RootObjectSource(&corev1.PersistentVolume{}, r.importToLeafVolume, route.VolumeChanged),
		route.DelayUnlessUrgent(route.NeverUrgent, link.RootObjectSource(&corev1.PersistentVolumeClaim{}, r.rootClaimToLeafVolumes, route.ClaimChanged)),
		link.RootObjectSource(&corev1.Node{}, r.nodeToUnreachedVolumes, route.LabelsChanged),
		link.RootObjectSource(&storagev1.StorageClass{}, r.classToRequestedVolumes),
		link.RootObjectSource(&storagev1.StorageClass{}, r.classToImportedVolumes),
		route.DelayUnlessUrgent(route.NeverUrgent, link.RootDeletionSource(&corev1.PersistentVolumeClaim{}, r.deletedClaimToVolumes)),
	)
}

// leafVolumeChangeUrgent marks changes to a leaf PV as urgent unless it is released, because its claim waits for the
// host PV.
func leafVolumeChangeUrgent(_ context.Context, _, after client.Object) bool {
	pv, ok := after.(*corev1.PersistentVolume)
	return ok && pv.DeletionTimestamp == nil && pv.Status.Phase != corev1.VolumeReleased
}

// Reconcile takes the next step for one leaf PV and its host PV.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	s, err := observe.ObserverOfLink(r.Link, r.Options.Options).ObserveLeafVolume(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if s == nil {
		r.forgetUnreached(request.Name)
		r.Orphans.RecordVolumeGone(r.Registration, request.Name)
		again, err := r.reportMissingVolume(ctx, request.Name)
		return reconcile.Result{RequeueAfter: again}, err
	}
	r.forgetSettledMirror(s)
	again := r.reportImportProblems(s)
	plan := lifecycle.NextPlan(s)
	r.Orphans.SetOrphanCandidate(r.Registration, request.Name, mayBeOrphan(s, plan))
	result, err := r.proceedWithPlan(ctx, s, plan)
	result.RequeueAfter = route.SoonerDelay(result.RequeueAfter, again)
	return result, err
}

// forgetSettledMirror drops the record of the host PV that was created for a root, once the root is bound or
// gone.
func (r *reconciler) forgetSettledMirror(s *volume.Observed) {
	switch {
	case s.Root != nil && s.Root.Spec.VolumeName != "":
		r.Mirrors.ForgetClaim(s.Root.UID)
	case s.Root == nil && s.Host != nil:
		r.Mirrors.ForgetClaim(s.Origin.UID)
	}
}

// mayBeOrphan reports whether, according to the caches, a volume may have no root. If so, live reads
// of all volumes must decide.
func mayBeOrphan(s *volume.Observed, plan lifecycle.Plan) bool {
	if plan.Phase == lifecycle.Surplus || s.LeafStamped && s.Root == nil && s.Host == nil && plan.StepOwnedBy(lifecycle.LeafPV) == lifecycle.None {
		return true
	}
	// A provisioner may have created it for a leaf claim that Xylem withdrew.
	return !s.RelatedToHost() && s.Leaf.Spec.ClaimRef != nil &&
		s.Leaf.Status.Phase == corev1.VolumeReleased && s.Leaf.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
}

// consumersInMember returns the Pods in this member for which a promise was fulfilled.
func (r *reconciler) consumersInMember(ctx context.Context, root *corev1.PersistentVolumeClaim) []corev1.Pod {
	if root == nil {
		return nil
	}
	pods, err := index.PodsOfClaim(ctx, r.Host, client.ObjectKeyFromObject(root))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the Pods of a promise that was fulfilled", "root", client.ObjectKeyFromObject(root))
	}
	return slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return !r.HasNode(pod.Spec.NodeName) || podstatus.IsPodFinished(&pod) })
}

func requestForObject(_ context.Context, obj client.Object) []reconcile.Request {
	return requestForVolume(obj.GetName())
}

func claimToVolume(_ context.Context, obj client.Object) []reconcile.Request {
	claim, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok {
		return nil
	}
	return requestForVolume(claim.Spec.VolumeName)
}

// hostVolumeToLeafVolumes enqueues the leaf PV that a host PV represents. For an unfulfilled promise, it
// enqueues the leaf PVs that may fulfill it: the leaf claim's PV, and PVs with the root's stamp,
// whose leaf claim may have been lost.
func (r *reconciler) hostVolumeToLeafVolumes(ctx context.Context, obj client.Object) []reconcile.Request {
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok || pv.Spec.CSI == nil {
		return nil
	}
	if hostpv.IsUnfulfilledPromise(pv) && pv.Spec.ClaimRef != nil {
		ref := pv.Spec.ClaimRef
		return r.requestsForVolumesOfRoot(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, ref.UID)
	}
	_, leaf, _, _ := hostpv.LeafOfHostVolume(pv)
	return requestForVolume(leaf)
}

// requestsForVolumesOfRoot enqueues the volumes that were created for a root: the leaf claim's volume, and volumes with
// the root's stamp.
func (r *reconciler) requestsForVolumesOfRoot(ctx context.Context, root types.NamespacedName, uid types.UID) []reconcile.Request {
	found := r.leafClaimKeyToVolume(ctx, root)
	volumes, err := index.LeafVolumesOfRoot(ctx, r.Cache, uid)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the volumes of a claim", "root", root)
	}
	for i := range volumes {
		found = append(found, requestForVolume(volumes[i].Name)...)
	}
	return found
}

// deletedClaimToVolumes enqueues the volumes that were created for a deleted claim.
func (r *reconciler) deletedClaimToVolumes(ctx context.Context, root client.Object) []reconcile.Request {
	return r.requestsForVolumesOfRoot(ctx, client.ObjectKeyFromObject(root), root.GetUID())
}

// rootClaimToLeafVolumes enqueues the PV of the leaf claim with that name, the leaf PV that the root requests, and
// the volumes from which a promise's claim is to be cloned, which are retained until then.
func (r *reconciler) rootClaimToLeafVolumes(ctx context.Context, root client.Object) []reconcile.Request {
	found := append(claimToVolume(ctx, root), r.leafClaimKeyToVolume(ctx, client.ObjectKeyFromObject(root))...)
	claim, ok := root.(*corev1.PersistentVolumeClaim)
	if !ok || !hostpv.IsPromiseName(claim.Spec.VolumeName) {
		return found
	}
	source, _ := mirror.DataSourceOf(claim)
	if record, recorded := mirror.DataSourceRecordOf(claim); recorded && record.ClusterID == r.ClusterID && source.IsClaim() {
		found = append(found, r.requestsForVolumesOfRoot(ctx, types.NamespacedName{Namespace: claim.Namespace, Name: source.Name}, record.UID)...)
	}
	return found
}

// leafClaimKeyToVolume enqueues the volume that the leaf claim names.
func (r *reconciler) leafClaimKeyToVolume(ctx context.Context, key types.NamespacedName) []reconcile.Request {
	var leaf corev1.PersistentVolumeClaim
	if err := r.Cache.Get(ctx, key, &leaf); err != nil {
		return nil
	}
	return requestForVolume(leaf.Spec.VolumeName)
}

// classToRequestedVolumes enqueues the volumes that unbound claims of a class request by name, because the class
// determines whether they may adopt them.
func (r *reconciler) classToRequestedVolumes(ctx context.Context, class client.Object) []reconcile.Request {
	var found []reconcile.Request
	if err := r.Router.VisitObjects(r.RouteOwner(), &corev1.PersistentVolumeClaim{}, metav1.NamespaceAll, func(obj client.Object) {
		claim, ok := obj.(*corev1.PersistentVolumeClaim)
		if ok && claim.Spec.VolumeName != "" && claim.Status.Phase != corev1.ClaimBound && hostpv.ClassNameOf(claim) == class.GetName() {
			found = append(found, requestForVolume(claim.Spec.VolumeName)...)
		}
	}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the claims that request volumes by name", "class", class.GetName())
	}
	return found
}

func requestForVolume(name string) []reconcile.Request {
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}
