package rootpv

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/news"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

const (
	// Name is the name of the controller.
	Name  = "root_pv"
	actor = guarded.Actor("root-pv")
	// workers is the number of volumes of one member that are reconciled concurrently.
	workers = 8
)

// reconciler reconciles the host PVs whose leaf PV is in one member, by their names in the
// host.
type reconciler struct {
	*member.Link
	news         *news.StateMemory // about host PVs, by UID
	missingDisks *fencing.MissingStorage
	options      observe.Options
	// leafGoneEvidence contains the evidence with which root_pv has deleted host PVs, until their finalizers are removed.
	leafGoneEvidence leafGoneEvidence
}

// Setup adds the controller to a member's link. The records show which volumes the member has lost.
func Setup(link *member.Link, options observe.Options, records *fencing.HostRecords) error {
	r := &reconciler{Link: link, news: news.New(link.Clock), missingDisks: fencing.NewMissingStorage(records), options: options, leafGoneEvidence: newLeafGoneEvidence()}
	return link.AddController(Name, workers, r,
		route.DelayUnlessUrgent(hostVolumeChangeUrgent, link.RootObjectSource(&corev1.PersistentVolume{}, link.OnlyOwnObjects(requestForObject))),
		route.DelayUnlessUrgent(route.NeverUrgent, link.RootObjectSource(&corev1.Pod{}, r.podToPromises, route.PodChanged)),
		route.DelayUnlessUrgent(route.IsDeletion, link.RootObjectSource(&corev1.PersistentVolumeClaim{}, r.rootClaimToHostVolumes, route.ClaimChanged)),
		link.RootDeletionSource(&corev1.PersistentVolumeClaim{}, r.deletedClaimToHostVolumes),
		route.DelayUnlessUrgent(route.IsDeletion, link.LeafObjectSource(&corev1.PersistentVolume{}, r.leafVolumeToHostVolumes, route.ConcernsPredicate(route.VolumeChanged))),
		route.DelayUnlessUrgent(route.IsDeletion, link.LeafObjectSource(&corev1.PersistentVolumeClaim{}, r.leafClaimToHostVolumes, route.ConcernsPredicate(route.LeafClaimChanged))),
	)
}

// hostVolumeChangeUrgent makes the release and the deletion of a host PV urgent.
func hostVolumeChangeUrgent(_ context.Context, _, after client.Object) bool {
	pv, ok := after.(*corev1.PersistentVolume)
	return ok && (pv.DeletionTimestamp != nil || pv.Status.Phase == corev1.VolumeReleased)
}

// Reconcile takes the next step of releasing one host PV.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	s, err := observe.ObserverOfLink(r.Link, r.options).ObserveHostVolume(ctx, request.Name)
	if err != nil || s == nil {
		return reconcile.Result{}, err
	}
	return r.planAndExecute(ctx, s)
}

// planAndExecute takes the next step if this controller owns it.
func (r *reconciler) planAndExecute(ctx context.Context, s *volume.Observed) (reconcile.Result, error) {
	if s.Leaf != nil && (!s.HasXylemFinalizer() || r.LastRestoreTimes().MayLackLeaf(s.Host)) {
		r.missingDisks.RecordObserved(s.Host)
	}
	plan := lifecycle.NextPlan(s)
	if s.Unused.Unreadable != nil && stepNeedsGracePeriod(plan.StepOwnedBy(lifecycle.RootPV)) {
		return reconcile.Result{}, s.Unused.Unreadable
	}
	return r.executeStep(ctx, s, plan)
}

func requestForObject(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: obj.GetName()}}}
}

// rootClaimToHostVolumes enqueues the host PVs that refer to a claim. A claim's second host PV is Released
// while the claim exists, and does not change when the claim is deleted. The same applies to a host
// PV whose leaf PV is still used by the leaf claim of an earlier root.
func (r *reconciler) rootClaimToHostVolumes(ctx context.Context, claim client.Object) []reconcile.Request {
	key := client.ObjectKeyFromObject(claim)
	hosts, err := index.HostVolumesOfClaim(ctx, r.Host, key)
	found := requestsForHostVolumes(ctx, hosts, err)
	leaf, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, r.Cache, key)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the leaf claim of a claim", "root", key)
	}
	if leaf == nil || leaf.Spec.VolumeName == "" {
		return found
	}
	return append(found, r.leafNameToHostVolumes(ctx, leaf.Spec.VolumeName)...)
}

// deletedClaimToHostVolumes enqueues the host PVs of this member that refer to a deleted claim.
func (r *reconciler) deletedClaimToHostVolumes(ctx context.Context, claim client.Object) []reconcile.Request {
	hosts, err := index.HostVolumesOfClaim(ctx, r.Host, client.ObjectKeyFromObject(claim))
	return requestsForHostVolumes(ctx, slices.DeleteFunc(hosts, func(pv corev1.PersistentVolume) bool { return pv.Labels[v1alpha1.LabelClusterID] != r.ClusterID }), err)
}

// leafVolumeToHostVolumes enqueues the host PVs that represent a leaf PV.
func (r *reconciler) leafVolumeToHostVolumes(ctx context.Context, leaf client.Object) []reconcile.Request {
	return r.leafNameToHostVolumes(ctx, leaf.GetName())
}

// leafClaimToHostVolumes enqueues the host PVs that represent a leaf claim's volume, the host PVs of its
// root, and the promise for which it was created. Each may be deleted once the leaf claim is gone.
func (r *reconciler) leafClaimToHostVolumes(ctx context.Context, obj client.Object) []reconcile.Request {
	claim, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok {
		return nil
	}
	var found []reconcile.Request
	if claim.Spec.VolumeName != "" {
		found = r.leafNameToHostVolumes(ctx, claim.Spec.VolumeName)
	}
	origin, ours := mirror.LeafOriginFromHost(r.HostID, claim)
	if !ours {
		return found
	}
	hosts, err := index.HostVolumesOfClaim(ctx, r.Host, origin.Root)
	found = append(found, requestsForHostVolumes(ctx, hosts, err)...)
	promise, err := index.PromiseOfClaim(ctx, r.Host, origin.UID)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the promise of a leaf claim", "root", origin.Root)
	}
	if promise != nil && hostpv.IsUnfulfilledPromiseIn(promise, r.ClusterID) {
		found = append(found, requestForObject(ctx, promise)...)
	}
	return found
}

func (r *reconciler) leafNameToHostVolumes(ctx context.Context, leaf string) []reconcile.Request {
	hosts, err := index.HostVolumesOfLeaf(ctx, r.Host, r.ClusterID, leaf)
	return requestsForHostVolumes(ctx, hosts, err)
}

func requestsForHostVolumes(ctx context.Context, hosts []corev1.PersistentVolume, err error) []reconcile.Request {
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the host PVs that an event concerns")
		return nil
	}
	var found []reconcile.Request
	for i := range hosts {
		found = append(found, reconcile.Request{NamespacedName: types.NamespacedName{Name: hosts[i].Name}})
	}
	return found
}
