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
	"github.com/xylem-io/xylem/internal/mirror/datasource"
	"github.com/xylem-io/xylem/internal/mirror/hostclass"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/news"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/route/urgency"
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
	news *news.News // about admins' host PVs, by UID
}

// Options configures the controller.
type Options struct {
	// Options contains the OrphanTracker, which also records volumes that may be orphans.
	observe.Options
	// Mirrors contains the host PVs that were created for claims.
	Mirrors *account.Mirrors
}

// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;list;watch;create;patch;delete

// Setup adds the controller to a member's link.
func Setup(link *member.Link, o Options) error {
	r := &reconciler{Link: link, Options: o, news: news.New(link.Clock)}
	return link.Controller(Name, workers, r,
		urgency.Unhurried(inUse, link.LeafSource(&corev1.PersistentVolume{}, sameName, route.Concerning(route.VolumeChanged))),
		link.LeafSource(&corev1.PersistentVolumeClaim{}, ofClaim, route.Concerning(route.LeafClaimChanged)),
		urgency.Unhurried(urgency.Never, link.RootSource(&corev1.PersistentVolume{}, link.Own(r.ofHostVolume), route.VolumeChanged)),
		link.RootSource(&corev1.PersistentVolume{}, r.ofImport, route.VolumeChanged),
		urgency.Unhurried(urgency.Never, link.RootSource(&corev1.PersistentVolumeClaim{}, r.ofRootClaim, route.ClaimChanged)),
		link.RootSource(&storagev1.StorageClass{}, r.asking),
		link.RootSource(&storagev1.StorageClass{}, r.ofImportClass),
		urgency.Unhurried(urgency.Never, link.RootEnds(&corev1.PersistentVolumeClaim{}, r.ofEnd)),
	)
}

// inUse marks changes to a leaf PV as urgent unless it is released, because its claim waits for the
// host PV.
func inUse(_ context.Context, _, after client.Object) bool {
	pv, ok := after.(*corev1.PersistentVolume)
	return ok && pv.DeletionTimestamp == nil && pv.Status.Phase != corev1.VolumeReleased
}

// Reconcile takes the next step for one leaf PV and its host PV.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	s, err := observe.For(r.Link, r.Options.Options).OfLeaf(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if s == nil {
		r.Orphans.Gone(r.Registration, request.Name)
		again, err := r.missing(ctx, request.Name)
		return reconcile.Result{RequeueAfter: again}, err
	}
	r.forget(s)
	again := r.reportImports(s)
	plan := lifecycle.Next(s)
	r.Orphans.SetCandidate(r.Registration, request.Name, mayBeOrphan(s, plan))
	result, err := r.proceed(ctx, s, plan)
	result.RequeueAfter = route.Sooner(result.RequeueAfter, again)
	return result, err
}

// forget drops the record of the host PV that was created for a root, once the root is bound or
// gone.
func (r *reconciler) forget(s *volume.Observed) {
	switch {
	case s.Root != nil && s.Root.Spec.VolumeName != "":
		r.Mirrors.Forget(s.Root.UID)
	case s.Root == nil && s.Host != nil:
		r.Mirrors.Forget(s.Origin.UID)
	}
}

// mayBeOrphan reports whether, according to the caches, a volume may have no root. If so, live reads
// of all volumes must decide.
func mayBeOrphan(s *volume.Observed, plan lifecycle.Plan) bool {
	if plan.Phase == lifecycle.Surplus || s.Stamped && s.Root == nil && s.Host == nil && plan.By(lifecycle.LeafPV) == lifecycle.None {
		return true
	}
	// A provisioner may have created it for a leaf claim that Xylem withdrew.
	return !s.Ours() && s.Leaf.Spec.ClaimRef != nil &&
		s.Leaf.Status.Phase == corev1.VolumeReleased && s.Leaf.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
}

// consumers returns the Pods in this member for which a promise was fulfilled.
func (r *reconciler) consumers(ctx context.Context, root *corev1.PersistentVolumeClaim) []corev1.Pod {
	if root == nil {
		return nil
	}
	pods, err := index.PodsOfClaim(ctx, r.Host, client.ObjectKeyFromObject(root))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the Pods of a promise that was fulfilled", "root", client.ObjectKeyFromObject(root))
	}
	return slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return pod.Spec.NodeName != r.NodeName || podstatus.Finished(&pod) })
}

func sameName(_ context.Context, obj client.Object) []reconcile.Request { return named(obj.GetName()) }

func ofClaim(_ context.Context, obj client.Object) []reconcile.Request {
	claim, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok {
		return nil
	}
	return named(claim.Spec.VolumeName)
}

// ofHostVolume enqueues the leaf PV that a host PV represents. For an unfulfilled promise, it
// enqueues the leaf PVs that may fulfill it: the leaf claim's PV, and PVs with the root's stamp,
// whose leaf claim may have been lost.
func (r *reconciler) ofHostVolume(ctx context.Context, obj client.Object) []reconcile.Request {
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok || pv.Spec.CSI == nil {
		return nil
	}
	if hostpv.IsUnfulfilled(pv) && pv.Spec.ClaimRef != nil {
		ref := pv.Spec.ClaimRef
		return r.made(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, ref.UID)
	}
	_, leaf, _, _ := hostpv.LeafOf(pv)
	return named(leaf)
}

// made enqueues the volumes that were created for a root: the leaf claim's volume, and volumes with
// the root's stamp.
func (r *reconciler) made(ctx context.Context, root types.NamespacedName, uid types.UID) []reconcile.Request {
	found := r.ofLeafClaim(ctx, root)
	volumes, err := index.VolumesOfRoot(ctx, r.Cache, uid)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the volumes of a claim", "root", root)
	}
	for i := range volumes {
		found = append(found, named(volumes[i].Name)...)
	}
	return found
}

// ofEnd enqueues the volumes that were created for a deleted claim.
func (r *reconciler) ofEnd(ctx context.Context, root client.Object) []reconcile.Request {
	return r.made(ctx, client.ObjectKeyFromObject(root), root.GetUID())
}

// ofRootClaim enqueues the PV of the leaf claim with that name, the leaf PV that the root requests, and
// the volumes from which a promise's claim is to be cloned, which are retained until then.
func (r *reconciler) ofRootClaim(ctx context.Context, root client.Object) []reconcile.Request {
	found := append(ofClaim(ctx, root), r.ofLeafClaim(ctx, client.ObjectKeyFromObject(root))...)
	claim, ok := root.(*corev1.PersistentVolumeClaim)
	if !ok || !hostpv.NamesPromise(claim.Spec.VolumeName) {
		return found
	}
	source, _ := datasource.Of(claim)
	if record, recorded := datasource.RecordOf(claim); recorded && record.ClusterID == r.ClusterID && source.IsClaim() {
		found = append(found, r.made(ctx, types.NamespacedName{Namespace: claim.Namespace, Name: source.Name}, record.UID)...)
	}
	return found
}

// ofLeafClaim enqueues the volume that the leaf claim names.
func (r *reconciler) ofLeafClaim(ctx context.Context, key types.NamespacedName) []reconcile.Request {
	var leaf corev1.PersistentVolumeClaim
	if err := r.Cache.Get(ctx, key, &leaf); err != nil {
		return nil
	}
	return named(leaf.Spec.VolumeName)
}

// asking enqueues the volumes that unbound claims of a class request by name, because the class
// determines whether they may adopt them.
func (r *reconciler) asking(ctx context.Context, class client.Object) []reconcile.Request {
	var found []reconcile.Request
	if err := r.Router.Each(r.Owner(), &corev1.PersistentVolumeClaim{}, metav1.NamespaceAll, func(obj client.Object) {
		claim, ok := obj.(*corev1.PersistentVolumeClaim)
		if ok && claim.Spec.VolumeName != "" && claim.Status.Phase != corev1.ClaimBound && hostclass.NameOf(claim) == class.GetName() {
			found = append(found, named(claim.Spec.VolumeName)...)
		}
	}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the claims that request volumes by name", "class", class.GetName())
	}
	return found
}

func named(name string) []reconcile.Request {
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}
