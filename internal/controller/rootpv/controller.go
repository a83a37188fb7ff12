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
	"github.com/xylem-io/xylem/internal/member/hostrecord"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/news"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/route/urgency"
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
	news    *news.News // about host PVs, by UID
	missing *hostrecord.Missing
	options observe.Options
	// leafGone contains the evidence with which root_pv has deleted host PVs, until their finalizers are removed.
	leafGone leafGone
}

// Setup adds the controller to a member's link. The records show which volumes the member has lost.
func Setup(link *member.Link, options observe.Options, records *hostrecord.Records) error {
	r := &reconciler{Link: link, news: news.New(link.Clock), missing: hostrecord.NewMissing(records), options: options, leafGone: newLeafGone()}
	return link.Controller(Name, workers, r,
		urgency.Unhurried(ending, link.RootSource(&corev1.PersistentVolume{}, link.Own(sameName))),
		urgency.Unhurried(urgency.Never, link.RootSource(&corev1.Pod{}, r.ofPod, route.PodChanged)),
		urgency.Unhurried(urgency.Deleted, link.RootSource(&corev1.PersistentVolumeClaim{}, r.ofRootClaim, route.ClaimChanged)),
		link.RootEnds(&corev1.PersistentVolumeClaim{}, r.ofEnd),
		urgency.Unhurried(urgency.Deleted, link.LeafSource(&corev1.PersistentVolume{}, r.ofLeaf, route.Concerning(route.VolumeChanged))),
		urgency.Unhurried(urgency.Deleted, link.LeafSource(&corev1.PersistentVolumeClaim{}, r.ofLeafClaim, route.Concerning(route.LeafClaimChanged))),
	)
}

// ending makes the release and the deletion of a host PV urgent.
func ending(_ context.Context, _, after client.Object) bool {
	pv, ok := after.(*corev1.PersistentVolume)
	return ok && (pv.DeletionTimestamp != nil || pv.Status.Phase == corev1.VolumeReleased)
}

// Reconcile takes the next step of releasing one host PV.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	s, err := observe.For(r.Link, r.options).OfHost(ctx, request.Name)
	if err != nil || s == nil {
		return reconcile.Result{}, err
	}
	return r.proceed(ctx, s)
}

// proceed takes the next step if this controller owns it.
func (r *reconciler) proceed(ctx context.Context, s *volume.Observed) (reconcile.Result, error) {
	if s.Leaf != nil && (!s.HasFinalizer() || r.LastRestores().MayLackLeaf(s.Host)) {
		r.missing.Observe(s.Host)
	}
	plan := lifecycle.Next(s)
	if s.Unused.Unreadable != nil && releases(plan.By(lifecycle.RootPV)) {
		return reconcile.Result{}, s.Unused.Unreadable
	}
	return r.act(ctx, s, plan)
}

func sameName(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: obj.GetName()}}}
}

// ofRootClaim enqueues the host PVs that refer to a claim. A claim's second host PV is Released
// while the claim exists, and does not change when the claim is deleted. The same applies to a host
// PV whose leaf PV is still used by the leaf claim of an earlier root.
func (r *reconciler) ofRootClaim(ctx context.Context, claim client.Object) []reconcile.Request {
	key := client.ObjectKeyFromObject(claim)
	hosts, err := index.VolumesOfClaim(ctx, r.Host, key)
	found := requests(ctx, hosts, err)
	leaf, err := index.Find[corev1.PersistentVolumeClaim](ctx, r.Cache, key)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the leaf claim of a claim", "root", key)
	}
	if leaf == nil || leaf.Spec.VolumeName == "" {
		return found
	}
	return append(found, r.standFor(ctx, leaf.Spec.VolumeName)...)
}

// ofEnd enqueues the host PVs of this member that refer to a deleted claim.
func (r *reconciler) ofEnd(ctx context.Context, claim client.Object) []reconcile.Request {
	hosts, err := index.VolumesOfClaim(ctx, r.Host, client.ObjectKeyFromObject(claim))
	return requests(ctx, slices.DeleteFunc(hosts, func(pv corev1.PersistentVolume) bool { return pv.Labels[v1alpha1.LabelClusterID] != r.ClusterID }), err)
}

// ofLeaf enqueues the host PVs that represent a leaf PV.
func (r *reconciler) ofLeaf(ctx context.Context, leaf client.Object) []reconcile.Request {
	return r.standFor(ctx, leaf.GetName())
}

// ofLeafClaim enqueues the host PVs that represent a leaf claim's volume, the host PVs of its
// root, and the promise for which it was created. Each may be deleted once the leaf claim is gone.
func (r *reconciler) ofLeafClaim(ctx context.Context, obj client.Object) []reconcile.Request {
	claim, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok {
		return nil
	}
	var found []reconcile.Request
	if claim.Spec.VolumeName != "" {
		found = r.standFor(ctx, claim.Spec.VolumeName)
	}
	origin, ours := mirror.OriginIn(r.HostID, claim)
	if !ours {
		return found
	}
	hosts, err := index.VolumesOfClaim(ctx, r.Host, origin.Root)
	found = append(found, requests(ctx, hosts, err)...)
	promise, err := index.PromiseOf(ctx, r.Host, origin.UID)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the promise of a leaf claim", "root", origin.Root)
	}
	if promise != nil && hostpv.IsPromiseIn(promise, r.ClusterID) {
		found = append(found, sameName(ctx, promise)...)
	}
	return found
}

func (r *reconciler) standFor(ctx context.Context, leaf string) []reconcile.Request {
	hosts, err := index.VolumesOfLeaf(ctx, r.Host, r.ClusterID, leaf)
	return requests(ctx, hosts, err)
}

func requests(ctx context.Context, hosts []corev1.PersistentVolume, err error) []reconcile.Request {
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
