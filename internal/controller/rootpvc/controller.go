package rootpvc

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/backlog"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

const (
	// Name of the controller.
	Name  = "root_pvc"
	actor = guarded.Actor("root-pvc")
	// workers is the number of claims of one member that are reconciled concurrently. Each needs
	// at most a write or two before it waits for a watch.
	workers = 8
)

// reconciler reconciles the claims of the host that concern one member, by the name that root
// and leaf share.
type reconciler struct {
	*member.Link
	Options
	pace *pace
}

// Options of the controller in all members.
type Options struct {
	// Namespace of the manager in the host, where its records are.
	Namespace string
	// Book has the orphans of other members.
	Book *account.Book
	// Mirrors has the host PVs that were created for claims.
	Mirrors *account.Mirrors
	// Passages measures provisioning latency since the placement.
	Passages *account.Passages
	// Gate delays claims that the host cannot bind yet.
	Gate *backlog.Gate
	// NominatedNode reports whether the host's scheduler sets status.nominatedNodeName before it
	// binds a Pod; see root_pod.
	NominatedNode bool
}

// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=list;watch
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshots;volumesnapshotcontents,verbs=list;watch

// Setup adds the controller to a member's link.
func Setup(link *member.Link, o Options) error {
	r := &reconciler{link, o, newPace()}
	return link.Controller(Name, workers, r,
		route.Unhurried(placing, link.RootSource(&corev1.PersistentVolumeClaim{}, r.ofRootClaim, rootClaimChanged)),
		link.RootEnds(&corev1.PersistentVolumeClaim{}, r.ofEnd),
		route.Unhurried(promising, link.RootSource(&corev1.PersistentVolume{}, r.ofRootVolume, route.VolumeChanged)),
		link.RootSource(&corev1.Pod{}, r.ofPod, route.PodChanged),
		link.RootSource(&storagev1.StorageClass{}, r.waiting),
		link.RootSource(&corev1.Namespace{}, r.inRootNamespace),
		route.Unhurried(route.Never, link.RootSource(&corev1.Pod{}, member.ClaimsOfWaiting, route.PodChanged)),
		link.HostSnapshotSource(&snapshotv1.VolumeSnapshot{}, r.ofSnapshot),
		link.HostSnapshotSource(&snapshotv1.VolumeSnapshotContent{}, r.ofSnapshot),
		link.LeafSnapshotSource(&snapshotv1.VolumeSnapshot{}, r.ofSnapshot),
		link.LeafSnapshotSource(&snapshotv1.VolumeSnapshotContent{}, r.ofSnapshot),
		link.Snapshots.Changes(r.restores),
		route.Unhurried(route.Deleted, link.LeafSource(&corev1.PersistentVolumeClaim{}, r.ofLeafClaim, route.Concerning(route.LeafClaimChanged))),
		route.Unhurried(route.Never, link.LeafSource(&corev1.PersistentVolume{}, r.ofLeafVolume, route.Concerning(route.VolumeChanged))),
		route.Unhurried(route.Never, link.LeafSource(&corev1.Pod{}, r.ofLeafPod, route.Concerning(route.PodChanged))),
		route.Unhurried(route.Never, link.LeafSource(&corev1.Event{}, r.ofWarning)),
		link.LeafSource(&storagev1.StorageClass{}, r.waiting),
		link.LeafSource(&corev1.Namespace{}, r.inNamespace),
		r.Book.FoundSource(r.rivals),
		r.Gate.Source(r.ClusterID, r.Registration),
	)
}

// rootClaimChanged is Concerns for root claims: metadata, spec, conditions, and whether the PV
// controller has requested the volume.
func rootClaimChanged(before, after client.Object) bool {
	was, known := before.(*corev1.PersistentVolumeClaim)
	is, ok := after.(*corev1.PersistentVolumeClaim)
	return !known || !ok || route.ClaimChanged(was, is) || !equality.Semantic.DeepEqual(was.Status.Conditions, is.Status.Conditions) ||
		was.Annotations[volumehelpers.AnnStorageProvisioner] != is.Annotations[volumehelpers.AnnStorageProvisioner]
}

// placing is Urgent for the two steps that place a claim: the PV controller requests its
// volume, and Xylem records the member.
var placing = route.WhenChanged(func(claim *corev1.PersistentVolumeClaim) [2]string {
	return [2]string{claim.Annotations[volumehelpers.AnnStorageProvisioner], claim.Annotations[v1alpha1.AnnotationPlacedIn]}
})

// promising is Urgent for promises without a disk, because Pods wait for each step.
func promising(_ context.Context, _, after client.Object) bool {
	pv, ok := after.(*corev1.PersistentVolume)
	return ok && hostpv.IsUnfulfilled(pv)
}

// Reconcile takes the next step for one claim.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.observer().OfClaim(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	plan := planned(o)
	if plan.Step != lifecycle.Place {
		r.Gate.Leave(r.ClusterID, request.NamespacedName)
	}
	if err := r.act(ctx, o, plan); err != nil || o.Root == nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: r.pace.owes(o.Root.UID)}, nil
}

func (r *reconciler) observer() observe.ClaimObserver {
	restores := r.LastRestores()
	return observe.ClaimObserver{
		Observer:     observerOf(r.Link),
		HostRestored: restores.Host, HostUnconfirmed: restores.HostUnconfirmed, NominatedNode: r.NominatedNode,
		Rivals: func(volume string, claim types.NamespacedName) []string {
			return r.Book.Rivals(r.Registration, volume, claim)
		},
	}
}

// planned returns this controller's step or report for a claim. The zero Plan leaves the step
// to another controller, whose write enqueues the claim.
func planned(o observe.Claim) lifecycle.Plan {
	report := lifecycle.Plan{Owner: lifecycle.RootPVC}
	if o.Observed == nil {
		return report
	}
	plan := lifecycle.Next(o.Observed)
	switch {
	case plan.Owner != lifecycle.RootPVC && (plan.Step == lifecycle.None || plan.Phase == lifecycle.Idle):
		return report // nothing that the claim waits for
	case plan.Owner != lifecycle.RootPVC:
		return lifecycle.Plan{}
	case plan.Step != lifecycle.DeleteLeft && o.HandedOver() && (plan.Step != lifecycle.None || !o.ForRoot()):
		return report // the plan is for another claim; the end of the leaf claim enqueues this one
	}
	return plan
}
