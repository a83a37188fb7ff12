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
	"github.com/xylem-io/xylem/internal/mirror/datasource"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/route/urgency"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

// claims enqueues the host's claims that concern one member.
type claims struct {
	*member.Link
	observer func() observe.Observer
}

// sourcesOf returns the events to which root_pvc reacts for one member.
func sourcesOf(link *member.Link, observer func() observe.Observer, orphans *account.OrphanTracker, admissions *backlog.Queue) []source.Source {
	r := &claims{link, observer}
	return []source.Source{
		urgency.Unhurried(placingSteps, link.RootSource(&corev1.PersistentVolumeClaim{}, r.ofRootClaim, rootClaimChanged)),
		link.RootEnds(&corev1.PersistentVolumeClaim{}, r.ofEnd),
		urgency.Unhurried(promising, link.RootSource(&corev1.PersistentVolume{}, r.ofRootVolume, route.VolumeChanged)),
		link.RootSource(&corev1.Pod{}, r.ofPod, route.PodChanged),
		link.RootSource(&storagev1.StorageClass{}, r.waiting),
		link.RootSource(&corev1.Node{}, r.waiting, route.Relabelled), // a class may require labels of the virtual node
		link.RootSource(&corev1.Namespace{}, r.inRootNamespace, route.Relabelled),
		urgency.Unhurried(urgency.Never, link.RootSource(&corev1.Pod{}, member.ClaimsOfWaiting, route.PodChanged)),
		link.HostSnapshotSource(&snapshotv1.VolumeSnapshot{}, r.ofSnapshot),
		link.HostSnapshotSource(&snapshotv1.VolumeSnapshotContent{}, r.ofSnapshot),
		link.LeafSnapshotSource(&snapshotv1.VolumeSnapshot{}, r.ofSnapshot),
		link.LeafSnapshotSource(&snapshotv1.VolumeSnapshotContent{}, r.ofSnapshot),
		link.Snapshots.Changes(r.restores),
		urgency.Unhurried(urgency.Deleted, link.LeafSource(&corev1.PersistentVolumeClaim{}, r.ofLeafClaim, route.Concerning(leafClaimChanged))),
		urgency.Unhurried(urgency.Never, link.LeafSource(&corev1.PersistentVolume{}, r.ofLeafVolume, route.Concerning(route.VolumeChanged))),
		urgency.Unhurried(urgency.Never, link.LeafSource(&corev1.Pod{}, r.ofLeafPod, route.Concerning(route.PodChanged))),
		urgency.Unhurried(urgency.Never, link.LeafSource(&corev1.Event{}, r.ofWarning)),
		link.LeafSource(&storagev1.StorageClass{}, r.waiting),
		link.LeafSource(&corev1.Namespace{}, r.inNamespace),
		link.Rejections.Changes(r.inNamespaceNamed),
		orphans.FoundSource(r.rivals),
		admissions.Source(r.ClusterID, r.Registration),
	}
}

// rootClaimChanged reports whether an update of a root claim changes its metadata, spec or
// conditions, or shows that the PV controller has requested the volume or lost it.
func rootClaimChanged(before, after client.Object) bool {
	was, known := before.(*corev1.PersistentVolumeClaim)
	is, ok := after.(*corev1.PersistentVolumeClaim)
	return !known || !ok || route.ClaimChanged(was, is) || !equality.Semantic.DeepEqual(was.Status.Conditions, is.Status.Conditions) ||
		provisioner(was) != provisioner(is) || (was.Status.Phase == corev1.ClaimLost) != (is.Status.Phase == corev1.ClaimLost)
}

// leafClaimChanged is route.LeafClaimChanged, and also reports that the PV controller has requested the
// volume.
func leafClaimChanged(before, after client.Object) bool {
	return route.LeafClaimChanged(before, after) || provisioner(before) != provisioner(after)
}

func provisioner(claim client.Object) string {
	return claim.GetAnnotations()[volumehelpers.AnnStorageProvisioner]
}

// placingSteps makes the two steps that place a claim urgent: the PV controller requests its volume,
// and Xylem records the member.
var placingSteps = urgency.WhenChanged(func(claim *corev1.PersistentVolumeClaim) [2]string {
	return [2]string{provisioner(claim), claim.Annotations[v1alpha1.AnnotationPlacedIn]}
})

// promising makes all events of a promise without a disk urgent, because Pods wait for each step.
func promising(_ context.Context, _, after client.Object) bool {
	pv, ok := after.(*corev1.PersistentVolume)
	return ok && hostpv.IsUnfulfilled(pv)
}

// chosen reports whether a claim's selected node or its placement names the member.
func chosen(claim *corev1.PersistentVolumeClaim, m mirror.Member) bool {
	return claim.Annotations[route.AnnSelectedNode] == m.NodeName || claim.Annotations[v1alpha1.AnnotationPlacedIn] == m.ClusterID
}

// ofHostVolume enqueues the claim to which a PV's claimRef points.
func ofHostVolume(_ context.Context, obj client.Object) []reconcile.Request {
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok || pv.Spec.ClaimRef == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: hostpv.ClaimKey(pv)}}
}

// ofLeafClaim enqueues the root of a leaf claim, its siblings, and the root that has, or should
// have, the volume that the leaf claim names.
func (r *claims) ofLeafClaim(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := append(r.WithSiblings(ctx, obj), r.clones(ctx, client.ObjectKeyFromObject(obj))...)
	if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok && claim.Spec.VolumeName != "" {
		requests = append(requests, r.ofLeaf(ctx, claim.Spec.VolumeName)...)
	}
	return requests
}

// ofLeafVolume enqueues the root of the leaf claim to which a leaf PV's claimRef points, the roots of
// the host PVs that represent the leaf PV, and the claim with the name in its stamp, which may request
// the PV.
func (r *claims) ofLeafVolume(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := append(r.withClones(ctx, ofHostVolume(ctx, obj)), r.ofLeaf(ctx, obj.GetName())...)
	if origin, ours := mirror.OriginIn(r.HostID, obj); ours && origin.Root.Name != "" {
		if stamped := (reconcile.Request{NamespacedName: origin.Root}); !slices.Contains(requests, stamped) {
			requests = append(requests, stamped)
		}
	}
	return requests
}

// ofLeaf returns requests for the roots of the host PVs that represent a leaf PV.
func (r *claims) ofLeaf(ctx context.Context, name string) []reconcile.Request {
	hosts, err := index.VolumesOfLeaf(ctx, r.Host, r.ClusterID, name)
	imports, importsErr := index.ImportsOf(ctx, r.Host, r.ClusterID, name)
	if err := errors.Join(err, importsErr); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the host volumes of a leaf volume", "leaf", name)
		return nil
	}
	hosts = slices.Concat(hosts, imports)
	var requests []reconcile.Request
	for i := range hosts {
		requests = append(requests, ofHostVolume(ctx, &hosts[i])...)
	}
	return requests
}

// waiting enqueues the claims that wait for an object here, because a class that was created or
// deleted may unblock them.
func (r *claims) waiting(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.each(ctx, metav1.NamespaceAll, func(claim *corev1.PersistentVolumeClaim) bool {
		return r.asks(claim) || chosen(claim, r.Member) && (claim.Spec.VolumeName == "" || hostpv.NamesPromise(claim.Spec.VolumeName))
	})
}

// rivals enqueues the claims that request a volume by name, because another member may have found,
// or lost, an orphan with that name.
func (r *claims) rivals(ctx context.Context, registration string) []reconcile.Request {
	if registration == r.Registration {
		return nil
	}
	return r.each(ctx, metav1.NamespaceAll, r.asks)
}

// asks reports whether a claim requests, by name, an existing volume to which it is not bound yet
// and that may be in this member.
func (r *claims) asks(claim *corev1.PersistentVolumeClaim) bool {
	placed := claim.Annotations[v1alpha1.AnnotationPlacedIn]
	return claim.Spec.VolumeName != "" && claim.Status.Phase != corev1.ClaimBound && (placed == "" || placed == r.ClusterID)
}

// inNamespace enqueues this member's claims in the host namespace with the given name.
func (r *claims) inNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	return r.inNamespaceNamed(ctx, namespace.GetName())
}

func (r *claims) inNamespaceNamed(ctx context.Context, namespace string) []reconcile.Request {
	return r.each(ctx, namespace, func(claim *corev1.PersistentVolumeClaim) bool { return chosen(claim, r.Member) })
}

// inRootNamespace enqueues two kinds of claims in a host namespace: those that request a volume by
// name, because the namespace's tenant determines whether they can have it, and this member's,
// because the namespace's labels may determine whether the member admits them.
func (r *claims) inRootNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	return r.each(ctx, namespace.GetName(), func(claim *corev1.PersistentVolumeClaim) bool { return r.asks(claim) || chosen(claim, r.Member) })
}

// each returns requests for the claims in a namespace, or in all namespaces, that concern this
// member and that wanted accepts.
func (r *claims) each(ctx context.Context, namespace string, wanted func(*corev1.PersistentVolumeClaim) bool) []reconcile.Request {
	var requests []reconcile.Request
	if err := r.Router.Each(r.Owner(), &corev1.PersistentVolumeClaim{}, namespace, func(obj client.Object) {
		if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok && wanted(claim) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(claim)})
		}
	}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the member's claims")
	}
	return requests
}

// ofWarning enqueues the claim for which a provisioner in the member reports a failure, unless the
// leaf claim is bound.
func (r *claims) ofWarning(ctx context.Context, obj client.Object) []reconcile.Request {
	event, ok := obj.(*corev1.Event)
	if !ok || !report.ReportsProvisioningFailure(event) {
		return nil
	}
	return r.unboundLeaf(ctx, types.NamespacedName{Namespace: event.InvolvedObject.Namespace, Name: event.InvolvedObject.Name})
}

// ofLeafPod enqueues the claims that a leaf Pod waits for.
func (r *claims) ofLeafPod(ctx context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Spec.NodeName != "" {
		return nil
	}
	var requests []reconcile.Request
	for _, name := range podspec.ClaimNames(pod) {
		requests = append(requests, r.unboundLeaf(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: name})...)
	}
	return requests
}

// unboundLeaf returns a request for the claim with this name if its leaf claim is not bound.
func (r *claims) unboundLeaf(ctx context.Context, key types.NamespacedName) []reconcile.Request {
	leaf, _, err := index.Leaf[corev1.PersistentVolumeClaim](ctx, r.Cache, r.HostID, key)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the leaf claim of an event or a Pod", "leaf", key)
	}
	if leaf == nil || leaf.Spec.VolumeName != "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// ofPod enqueues the claims of a Pod that are bound to promises.
func (r *claims) ofPod(ctx context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Spec.NodeName != r.NodeName && pod.Status.NominatedNodeName != r.NodeName {
		return nil
	}
	var requests []reconcile.Request
	for _, name := range podspec.ClaimNames(pod) {
		key := types.NamespacedName{Namespace: pod.Namespace, Name: name}
		claim, err := index.Find[corev1.PersistentVolumeClaim](ctx, r.Host, key)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "could not look up a Pod's claim", "root", key)
		}
		if claim != nil && hostpv.NamesPromise(claim.Spec.VolumeName) {
			requests = append(requests, reconcile.Request{NamespacedName: key})
		}
	}
	return requests
}

// ofRootClaim enqueues a claim. If this member was selected for it, the claim's Pods will be bound
// here, so ofRootClaim also enqueues the promises that these Pods use.
func (r *claims) ofRootClaim(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := append(member.SameKey(ctx, obj), r.ofSource(ctx, obj)...)
	claim, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok || !r.observer().SelectedHere(claim) {
		return requests
	}
	pods, err := index.PodsOfClaim(ctx, r.Host, client.ObjectKeyFromObject(claim))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the Pods of a claim", "root", client.ObjectKeyFromObject(claim))
	}
	for i := range pods {
		requests = append(requests, r.ofPod(ctx, &pods[i])...)
	}
	return requests
}

// ofEnd enqueues a deleted claim if this member has a leaf claim with its name.
func (r *claims) ofEnd(ctx context.Context, root client.Object) []reconcile.Request {
	key := client.ObjectKeyFromObject(root)
	leaf, _, err := index.Leaf[corev1.PersistentVolumeClaim](ctx, r.Cache, r.HostID, key)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the leaf claim of a deleted claim", "root", key)
	}
	if leaf == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// ofRootVolume enqueues the claim to which a host PV's claimRef points, and the root of its leaf PV's
// claim. If the PV is not this member's, ofRootVolume enqueues the claim only if a Pod of the claim is
// here.
func (r *claims) ofRootVolume(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := r.withClones(ctx, ofHostVolume(ctx, obj))
	if pv, ok := obj.(*corev1.PersistentVolume); ok {
		for _, own := range r.ofOwnLeaf(ctx, pv) {
			if !slices.Contains(requests, own) {
				requests = append(requests, own)
			}
		}
		if leaf, asks := hostpv.ImportOfIn(pv, r.ClusterID); asks { // a second PV for the volume changes the report
			return append(requests, r.ofLeaf(ctx, leaf)...)
		}
	}
	if obj.GetLabels()[v1alpha1.LabelClusterID] == r.ClusterID || len(requests) == 0 {
		return requests
	}
	pods, err := r.observer().PodsHere(ctx, requests[0].NamespacedName)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the Pods of a promise", "root", requests[0].NamespacedName)
	}
	if len(pods) > 0 {
		return requests
	}
	// root_pvc may have to report on a leaf claim that an abandoned promise has left.
	if leaf, err := index.Find[corev1.PersistentVolumeClaim](ctx, r.Cache, requests[0].NamespacedName); err != nil || leaf == nil {
		return nil
	}
	return requests
}

// ofOwnLeaf returns a request for the root of the leaf claim to which a host PV's leaf PV is bound. It
// is not the claim in the host PV's claimRef if somebody edited the claimRef.
func (r *claims) ofOwnLeaf(ctx context.Context, host *corev1.PersistentVolume) []reconcile.Request {
	cluster, name, _, ours := hostpv.LeafOf(host)
	if !ours || cluster != r.ClusterID {
		return nil
	}
	leaf, err := index.Find[corev1.PersistentVolume](ctx, r.Cache, index.Named(name))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the leaf volume of a host volume", "leaf", name)
	}
	if leaf == nil {
		return nil
	}
	return ofHostVolume(ctx, leaf)
}

// withClones enqueues the given claims, and the claims that clone them.
func (r *claims) withClones(ctx context.Context, requests []reconcile.Request) []reconcile.Request {
	for _, request := range requests {
		requests = append(requests, r.clones(ctx, request.NamespacedName)...)
	}
	return requests
}

// clones enqueues the claims whose data source is a claim, by its name.
func (r *claims) clones(ctx context.Context, claim types.NamespacedName) []reconcile.Request {
	found, err := index.ClaimsFrom(ctx, r.Host, claim.Namespace, datasource.ClaimKey(claim.Name))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the clones of a claim", "root", claim)
	}
	requests := make([]reconcile.Request, 0, len(found))
	for i := range found {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&found[i])})
	}
	return requests
}

// ofSnapshot enqueues the claims whose data source is the given VolumeSnapshot, or the
// VolumeSnapshot of the given content, by its name in either cluster.
func (r *claims) ofSnapshot(ctx context.Context, obj client.Object) []reconcile.Request {
	claims, err := index.RestoresOf(ctx, r.Host, index.SnapshotNamed(obj))
	return route.RequestsFor[corev1.PersistentVolumeClaim](ctx, claims, err, nil)
}

// restores enqueues the claims whose data source is a snapshot, because the member's snapshots have
// become readable or unreadable.
func (r *claims) restores(ctx context.Context, _ string) []reconcile.Request {
	return r.each(ctx, metav1.NamespaceAll, func(claim *corev1.PersistentVolumeClaim) bool {
		source, has := datasource.Of(claim)
		return has && source.IsSnapshot() && (claim.Spec.VolumeName == "" || hostpv.NamesPromise(claim.Spec.VolumeName))
	})
}

// ofSource enqueues the claims that depend on the location of a root claim: its clones and, if it
// has a data source itself, the other claims of its Pods, which wait until the location of that
// source is known.
func (r *claims) ofSource(ctx context.Context, root client.Object) []reconcile.Request {
	requests := r.clones(ctx, client.ObjectKeyFromObject(root))
	if claim, ok := root.(*corev1.PersistentVolumeClaim); ok && datasource.Has(claim) && claim.Spec.VolumeName == "" {
		requests = append(requests, r.SharingPods(ctx, claim)...)
	}
	return requests
}
