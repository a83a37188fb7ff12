package rootpvc

import (
	"context"
	"errors"
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/backlog"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

// claimMapper enqueues the host's claims that concern one member.
type claimMapper struct {
	*member.Link
	newObserver func() observe.Observer
}

// sourcesOf returns the events to which root_pvc reacts for one member.
func sourcesOf(link *member.Link, observer func() observe.Observer, orphans *account.OrphanTracker, admissions *backlog.Queue) []source.Source {
	r := &claimMapper{link, observer}
	return []source.Source{
		route.DelayUnlessUrgent(placingSteps, link.RootObjectSource(&corev1.PersistentVolumeClaim{}, r.rootClaimToRequests, rootClaimChanged)),
		link.RootDeletionSource(&corev1.PersistentVolumeClaim{}, r.deletedClaimToRequest),
		route.DelayUnlessUrgent(hostVolumeChangeUrgent, link.RootObjectSource(&corev1.PersistentVolume{}, r.hostVolumeToClaims, route.VolumeChanged)),
		link.RootObjectSource(&corev1.Pod{}, r.podToPromisedClaims, route.PodChanged),
		link.RootObjectSource(&storagev1.StorageClass{}, r.objectToWaitingClaims),
		link.RootObjectSource(&corev1.Node{}, r.objectToWaitingClaims, route.LabelsChanged), // a class may require labels of the virtual node
		link.RootObjectSource(&corev1.Namespace{}, r.rootNamespaceToClaims, route.LabelsChanged),
		route.DelayUnlessUrgent(route.NeverUrgent, link.RootObjectSource(&corev1.Pod{}, member.ClaimsOfUnboundPod, route.PodChanged)),
		link.HostSnapshotSource(&snapshotv1.VolumeSnapshot{}, r.snapshotToClaims),
		link.HostSnapshotSource(&snapshotv1.VolumeSnapshotContent{}, r.snapshotToClaims),
		link.LeafSnapshotSource(&snapshotv1.VolumeSnapshot{}, r.snapshotToClaims),
		link.LeafSnapshotSource(&snapshotv1.VolumeSnapshotContent{}, r.snapshotToClaims),
		link.Snapshots.ProblemChangeSource(r.registrationToRestores),
		route.DelayUnlessUrgent(route.IsDeletion, link.LeafObjectSource(&corev1.PersistentVolumeClaim{}, r.leafClaimToRoots, route.ConcernsPredicate(leafClaimChanged))),
		route.DelayUnlessUrgent(route.NeverUrgent, link.LeafObjectSource(&corev1.PersistentVolume{}, r.leafVolumeToRoots, route.ConcernsPredicate(route.VolumeChanged))),
		route.DelayUnlessUrgent(route.NeverUrgent, link.LeafObjectSource(&corev1.Pod{}, r.leafPodToClaims, route.ConcernsPredicate(route.PodChanged))),
		route.DelayUnlessUrgent(route.NeverUrgent, link.LeafObjectSource(&corev1.Event{}, r.warningToClaim)),
		link.LeafObjectSource(&storagev1.StorageClass{}, r.objectToWaitingClaims),
		link.LeafObjectSource(&corev1.Namespace{}, r.namespaceToClaims),
		link.NamespaceRejections.RejectionChangeSource(r.namespaceNameToClaims),
		orphans.OrphansChangeSource(r.registrationToRequestingClaims),
		admissions.MemberSource(r.ClusterID, r.Registration),
	}
}

// rootClaimChanged reports whether an update of a root claim changes its metadata, spec or
// conditions, or shows that the PV controller has requested the volume or lost it.
func rootClaimChanged(before, after client.Object) bool {
	was, known := before.(*corev1.PersistentVolumeClaim)
	is, ok := after.(*corev1.PersistentVolumeClaim)
	return !known || !ok || route.ClaimChanged(was, is) || !equality.Semantic.DeepEqual(was.Status.Conditions, is.Status.Conditions) ||
		requestedProvisioner(was) != requestedProvisioner(is) || (was.Status.Phase == corev1.ClaimLost) != (is.Status.Phase == corev1.ClaimLost)
}

// leafClaimChanged is route.LeafClaimChanged, and also reports that the PV controller has requested the
// volume.
func leafClaimChanged(before, after client.Object) bool {
	return route.LeafClaimChanged(before, after) || requestedProvisioner(before) != requestedProvisioner(after)
}

func requestedProvisioner(claim client.Object) string {
	return claim.GetAnnotations()[volumehelpers.AnnStorageProvisioner]
}

// placingSteps makes the two steps that place a claim urgent: the PV controller requests its volume,
// and Xylem records the member.
var placingSteps = route.WhenValueChanged(func(claim *corev1.PersistentVolumeClaim) [2]string {
	return [2]string{requestedProvisioner(claim), claim.Annotations[v1alpha1.AnnotationPlacedIn]}
})

// hostVolumeChangeUrgent makes all events of a promise without a disk urgent, because Pods wait for each step.
func hostVolumeChangeUrgent(_ context.Context, _, after client.Object) bool {
	pv, ok := after.(*corev1.PersistentVolume)
	return ok && hostpv.IsUnfulfilledPromise(pv)
}

// claimNamesMember reports whether a claim's selected node or its placement names the member.
func claimNamesMember(claim *corev1.PersistentVolumeClaim, m mirror.Member) bool {
	return m.HasNode(claim.Annotations[route.AnnSelectedNode]) || claim.Annotations[v1alpha1.AnnotationPlacedIn] == m.ClusterID
}

// volumeToClaimRef enqueues the claim to which a PV's claimRef points.
func volumeToClaimRef(_ context.Context, obj client.Object) []reconcile.Request {
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok || pv.Spec.ClaimRef == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: hostpv.ClaimRefKey(pv)}}
}

// leafClaimToRoots enqueues the root of a leaf claim, its siblings, and the root that has, or should
// have, the volume that the leaf claim names.
func (r *claimMapper) leafClaimToRoots(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := append(r.ClaimAndSiblings(ctx, obj), r.requestsForClones(ctx, client.ObjectKeyFromObject(obj))...)
	if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok && claim.Spec.VolumeName != "" {
		requests = append(requests, r.leafNameToRoots(ctx, claim.Spec.VolumeName)...)
	}
	return requests
}

// leafVolumeToRoots enqueues the root of the leaf claim to which a leaf PV's claimRef points, the roots of
// the host PVs that represent the leaf PV, and the claim with the name in its stamp, which may request
// the PV.
func (r *claimMapper) leafVolumeToRoots(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := append(r.appendClones(ctx, volumeToClaimRef(ctx, obj)), r.leafNameToRoots(ctx, obj.GetName())...)
	if origin, ours := mirror.LeafOriginFromHost(r.HostID, obj); ours && origin.Root.Name != "" {
		if stamped := (reconcile.Request{NamespacedName: origin.Root}); !slices.Contains(requests, stamped) {
			requests = append(requests, stamped)
		}
	}
	return requests
}

// leafNameToRoots returns requests for the roots of the host PVs that represent a leaf PV.
func (r *claimMapper) leafNameToRoots(ctx context.Context, name string) []reconcile.Request {
	hosts, err := index.HostVolumesOfLeaf(ctx, r.Host, r.ClusterID, name)
	imports, importsErr := index.ImportsOfLeaf(ctx, r.Host, r.ClusterID, name)
	if err := errors.Join(err, importsErr); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the host volumes of a leaf volume", "leaf", name)
		return nil
	}
	hosts = slices.Concat(hosts, imports)
	var requests []reconcile.Request
	for i := range hosts {
		requests = append(requests, volumeToClaimRef(ctx, &hosts[i])...)
	}
	return requests
}

// objectToWaitingClaims enqueues the claims that wait for an object here, because a class that was created or
// deleted may unblock them.
func (r *claimMapper) objectToWaitingClaims(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.requestsForClaims(ctx, metav1.NamespaceAll, func(claim *corev1.PersistentVolumeClaim) bool {
		return r.requestsVolumeHere(claim) || claimNamesMember(claim, r.Member) && (claim.Spec.VolumeName == "" || hostpv.IsPromiseName(claim.Spec.VolumeName))
	})
}

// registrationToRequestingClaims enqueues the claims that request a volume by name, because another member may have found,
// or lost, an orphan with that name.
func (r *claimMapper) registrationToRequestingClaims(ctx context.Context, registration string) []reconcile.Request {
	if registration == r.Registration {
		return nil
	}
	return r.requestsForClaims(ctx, metav1.NamespaceAll, r.requestsVolumeHere)
}

// requestsVolumeHere reports whether a claim requests, by name, an existing volume to which it is not bound yet
// and that may be in this member.
func (r *claimMapper) requestsVolumeHere(claim *corev1.PersistentVolumeClaim) bool {
	placed := claim.Annotations[v1alpha1.AnnotationPlacedIn]
	return claim.Spec.VolumeName != "" && claim.Status.Phase != corev1.ClaimBound && (placed == "" || placed == r.ClusterID)
}

// namespaceToClaims enqueues this member's claims in the host namespace with the given name.
func (r *claimMapper) namespaceToClaims(ctx context.Context, namespace client.Object) []reconcile.Request {
	return r.namespaceNameToClaims(ctx, namespace.GetName())
}

func (r *claimMapper) namespaceNameToClaims(ctx context.Context, namespace string) []reconcile.Request {
	return r.requestsForClaims(ctx, namespace, func(claim *corev1.PersistentVolumeClaim) bool { return claimNamesMember(claim, r.Member) })
}

// rootNamespaceToClaims enqueues two kinds of claims in a host namespace: those that request a volume by
// name, because the namespace's tenant determines whether they can have it, and this member's,
// because the namespace's labels may determine whether the member admits them.
func (r *claimMapper) rootNamespaceToClaims(ctx context.Context, namespace client.Object) []reconcile.Request {
	return r.requestsForClaims(ctx, namespace.GetName(), func(claim *corev1.PersistentVolumeClaim) bool {
		return r.requestsVolumeHere(claim) || claimNamesMember(claim, r.Member)
	})
}

// requestsForClaims returns requests for the claims in a namespace, or in all namespaces, that concern this
// member and that wanted accepts.
func (r *claimMapper) requestsForClaims(ctx context.Context, namespace string, wanted func(*corev1.PersistentVolumeClaim) bool) []reconcile.Request {
	var requests []reconcile.Request
	if err := r.Router.VisitObjects(r.RouteOwner(), &corev1.PersistentVolumeClaim{}, namespace, func(obj client.Object) {
		if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok && wanted(claim) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(claim)})
		}
	}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the member's claims")
	}
	return requests
}

// warningToClaim enqueues the claim for which a provisioner in the member reports a failure, unless the
// leaf claim is bound.
func (r *claimMapper) warningToClaim(ctx context.Context, obj client.Object) []reconcile.Request {
	event, ok := obj.(*corev1.Event)
	if !ok || !report.ReportsProvisioningFailure(event) {
		return nil
	}
	return r.requestIfLeafUnbound(ctx, types.NamespacedName{Namespace: event.InvolvedObject.Namespace, Name: event.InvolvedObject.Name})
}

// leafPodToClaims enqueues the claims that a leaf Pod waits for.
func (r *claimMapper) leafPodToClaims(ctx context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Spec.NodeName != "" {
		return nil
	}
	var requests []reconcile.Request
	for _, name := range podspec.ClaimNamesOfPod(pod) {
		requests = append(requests, r.requestIfLeafUnbound(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: name})...)
	}
	return requests
}

// requestIfLeafUnbound returns a request for the claim with this name if its leaf claim is not bound.
func (r *claimMapper) requestIfLeafUnbound(ctx context.Context, key types.NamespacedName) []reconcile.Request {
	leaf, _, err := index.FindStamped[corev1.PersistentVolumeClaim](ctx, r.Cache, r.HostID, key)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the leaf claim of an event or a Pod", "leaf", key)
	}
	if leaf == nil || leaf.Spec.VolumeName != "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// podToPromisedClaims enqueues the claims of a Pod that are bound to promises.
func (r *claimMapper) podToPromisedClaims(ctx context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok || !r.HasNode(pod.Spec.NodeName) && !r.HasNode(pod.Status.NominatedNodeName) {
		return nil
	}
	var requests []reconcile.Request
	for _, name := range podspec.ClaimNamesOfPod(pod) {
		key := types.NamespacedName{Namespace: pod.Namespace, Name: name}
		claim, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, r.Host, key)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "could not look up a Pod's claim", "root", key)
		}
		if claim != nil && hostpv.IsPromiseName(claim.Spec.VolumeName) {
			requests = append(requests, reconcile.Request{NamespacedName: key})
		}
	}
	return requests
}

// rootClaimToRequests enqueues a claim. If this member was selected for it, the claim's Pods will be bound
// here, so rootClaimToRequests also enqueues the promises that these Pods use.
func (r *claimMapper) rootClaimToRequests(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := append(member.RequestOfSameKey(ctx, obj), r.rootClaimToDependents(ctx, obj)...)
	claim, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok || !r.newObserver().NodeSelectedHere(claim) {
		return requests
	}
	pods, err := index.PodsOfClaim(ctx, r.Host, client.ObjectKeyFromObject(claim))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the Pods of a claim", "root", client.ObjectKeyFromObject(claim))
	}
	for i := range pods {
		requests = append(requests, r.podToPromisedClaims(ctx, &pods[i])...)
	}
	return requests
}

// deletedClaimToRequest enqueues a deleted claim if this member has a leaf claim with its name.
func (r *claimMapper) deletedClaimToRequest(ctx context.Context, root client.Object) []reconcile.Request {
	key := client.ObjectKeyFromObject(root)
	leaf, _, err := index.FindStamped[corev1.PersistentVolumeClaim](ctx, r.Cache, r.HostID, key)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the leaf claim of a deleted claim", "root", key)
	}
	if leaf == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// hostVolumeToClaims enqueues the claim to which a host PV's claimRef points, and the root of its leaf PV's
// claim. If the PV is not this member's, hostVolumeToClaims enqueues the claim only if a Pod of the claim is
// here.
func (r *claimMapper) hostVolumeToClaims(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := r.appendClones(ctx, volumeToClaimRef(ctx, obj))
	if pv, ok := obj.(*corev1.PersistentVolume); ok {
		for _, own := range r.hostVolumeToLeafRoot(ctx, pv) {
			if !slices.Contains(requests, own) {
				requests = append(requests, own)
			}
		}
		if leaf, asks := hostpv.RequestedImportIn(pv, r.ClusterID); asks { // a second PV for the volume changes the report
			return append(requests, r.leafNameToRoots(ctx, leaf)...)
		}
	}
	if obj.GetLabels()[v1alpha1.LabelClusterID] == r.ClusterID || len(requests) == 0 {
		return requests
	}
	pods, err := r.newObserver().PodsOfClaimHere(ctx, requests[0].NamespacedName)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the Pods of a promise", "root", requests[0].NamespacedName)
	}
	if len(pods) > 0 {
		return requests
	}
	// root_pvc may have to report on a leaf claim that an abandoned promise has left.
	if leaf, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, r.Cache, requests[0].NamespacedName); err != nil || leaf == nil {
		return nil
	}
	return requests
}

// hostVolumeToLeafRoot returns a request for the root of the leaf claim to which a host PV's leaf PV is bound. It
// is not the claim in the host PV's claimRef if somebody edited the claimRef.
func (r *claimMapper) hostVolumeToLeafRoot(ctx context.Context, host *corev1.PersistentVolume) []reconcile.Request {
	cluster, name, _, ours := hostpv.LeafOfHostVolume(host)
	if !ours || cluster != r.ClusterID {
		return nil
	}
	leaf, err := index.FindObject[corev1.PersistentVolume](ctx, r.Cache, index.ClusterScopedKey(name))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the leaf volume of a host volume", "leaf", name)
	}
	if leaf == nil {
		return nil
	}
	return volumeToClaimRef(ctx, leaf)
}

// appendClones enqueues the given claims, and the claims that clone them.
func (r *claimMapper) appendClones(ctx context.Context, requests []reconcile.Request) []reconcile.Request {
	for _, request := range requests {
		requests = append(requests, r.requestsForClones(ctx, request.NamespacedName)...)
	}
	return requests
}

// requestsForClones enqueues the claims whose data source is a claim, by its name.
func (r *claimMapper) requestsForClones(ctx context.Context, claim types.NamespacedName) []reconcile.Request {
	found, err := index.UnfilledClaimsFrom(ctx, r.Host, claim.Namespace, mirror.ClaimDataSourceKey(claim.Name))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the clones of a claim", "root", claim)
	}
	requests := make([]reconcile.Request, 0, len(found))
	for i := range found {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&found[i])})
	}
	return requests
}

// snapshotToClaims enqueues the claims whose data source is the given VolumeSnapshot, or the
// VolumeSnapshot of the given content, by its name in either cluster.
func (r *claimMapper) snapshotToClaims(ctx context.Context, obj client.Object) []reconcile.Request {
	claims, err := index.UnfilledClaimsFromSnapshot(ctx, r.Host, index.SnapshotKeyOf(obj))
	return route.RequestsFor[corev1.PersistentVolumeClaim](ctx, claims, err, nil)
}

// registrationToRestores enqueues the claims whose data source is a snapshot, because the member's snapshots have
// become readable or unreadable.
func (r *claimMapper) registrationToRestores(ctx context.Context, _ string) []reconcile.Request {
	return r.requestsForClaims(ctx, metav1.NamespaceAll, func(claim *corev1.PersistentVolumeClaim) bool {
		source, has := mirror.DataSourceOf(claim)
		return has && source.IsSnapshot() && (claim.Spec.VolumeName == "" || hostpv.IsPromiseName(claim.Spec.VolumeName))
	})
}

// rootClaimToDependents enqueues the claims that depend on the location of a root claim: its clones and, if it
// has a data source itself, the other claims of its Pods, which wait until the location of that
// source is known.
func (r *claimMapper) rootClaimToDependents(ctx context.Context, root client.Object) []reconcile.Request {
	requests := r.requestsForClones(ctx, client.ObjectKeyFromObject(root))
	if claim, ok := root.(*corev1.PersistentVolumeClaim); ok && mirror.HasDataSource(claim) && claim.Spec.VolumeName == "" {
		requests = append(requests, r.ClaimsOfSharingPods(ctx, claim)...)
	}
	return requests
}
