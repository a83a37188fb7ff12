package rootpod

import (
	"cmp"
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/refs"
	"github.com/xylem-io/xylem/internal/route"
)

// podMapper enqueues the host's Pods that concern one member.
type podMapper struct{ *member.Link }

// EventSources returns the events to which root_pod reacts for one member.
func EventSources(link *member.Link) []source.Source {
	p := &podMapper{link}
	return []source.Source{
		route.DelayUnlessUrgent(podChangeUrgent, link.RootObjectSource(&corev1.Pod{}, member.RequestOfSameKey, route.PodChanged)),
		route.DelayUnlessUrgent(route.NeverUrgent, link.RootObjectSource(&corev1.PersistentVolumeClaim{}, p.claimToPods, route.PartChanged(route.PlacementOfClaim))),
		route.DelayUnlessUrgent(route.NeverUrgent, link.RootObjectSource(&corev1.PersistentVolume{}, p.hostVolumeToPods, hostVolumeRecordChanged)),
		link.RootObjectSource(&corev1.Namespace{}, p.namespaceToPods),
		link.RootObjectSource(&corev1.Node{}, p.groupNodeToPods, groupSelectorChanged),
		route.DelayUnlessUrgent(route.CreatedOrDeleted, link.LeafObjectSource(&corev1.Pod{}, member.RequestOfSameKey, route.ConcernsPredicate(route.PodChanged))),
		route.DelayUnlessUrgent(route.CreatedOrDeleted, link.LeafObjectSource(&corev1.PersistentVolumeClaim{}, p.claimToPods, route.ConcernsPredicate(route.PartChanged(route.PlacementOfClaim)))), // the root claim has the same name
		link.LeafObjectSource(&corev1.ConfigMap{}, p.copyToPods(refs.KindConfigMap)),
		link.LeafObjectSource(&corev1.Secret{}, p.copyToPods(refs.KindSecret)),
		link.LeafObjectSource(&corev1.Namespace{}, p.namespaceToPods),
		link.NamespaceRejections.RejectionChangeSource(p.namespaceNameToPods),
		link.LeafObjectSource(&storagev1.StorageClass{}, p.leafClassToPods),
	}
}

// podChangeUrgent marks a change as urgent if it causes a Pod to be pushed, deleted or finished.
var podChangeUrgent = route.WhenValueChanged(func(pod *corev1.Pod) podProgress {
	s := podProgress{deleting: pod.DeletionTimestamp != nil, finished: podstatus.IsPodFinished(pod), debugged: len(pod.Spec.EphemeralContainers)}
	if podstatus.PushedStatus(pod) != corev1.ConditionTrue {
		s.node, s.nominated = pod.Spec.NodeName, pod.Status.NominatedNodeName
	}
	return s
})

type podProgress struct {
	node, nominated    string
	deleting, finished bool
	debugged           int
}

// hostVolumeRecordChanged is a predicate that admits all changes to a host PV except those to its status.
func hostVolumeRecordChanged(before, after client.Object) bool {
	was, known := before.(*corev1.PersistentVolume)
	is, ok := after.(*corev1.PersistentVolume)
	return !known || !ok || was.UID != is.UID || route.FinalizersChanged(was, is) || !equality.Semantic.DeepEqual(was.Spec, is.Spec) ||
		!maps.Equal(was.Labels, is.Labels) || !maps.Equal(was.Annotations, is.Annotations)
}

// claimToPods enqueues the Pods that use a claim.
func (p *podMapper) claimToPods(ctx context.Context, claim client.Object) []reconcile.Request {
	found, err := index.PodsOfClaim(ctx, p.Host, client.ObjectKeyFromObject(claim))
	return p.requestsForPods(ctx, found, err)
}

// leafClassToPods enqueues the Pods that have unbound leaf claims of a StorageClass in the member. The
// class's binding mode determines when they are pushed, and the class may be created after the
// claims.
func (p *podMapper) leafClassToPods(ctx context.Context, class client.Object) []reconcile.Request {
	var claims corev1.PersistentVolumeClaimList
	if err := p.Cache.List(ctx, &claims, index.ReadOnly); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not list the leaf claims of a StorageClass")
		return nil
	}
	var requests []reconcile.Request
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.Spec.VolumeName == "" && ptr.Deref(claim.Spec.StorageClassName, "") == class.GetName() {
			requests = append(requests, p.claimToPods(ctx, claim)...) // the root claim has the same name
		}
	}
	return requests
}

// hostVolumeToPods enqueues the Pods that use the claim of a host PV.
func (p *podMapper) hostVolumeToPods(ctx context.Context, obj client.Object) []reconcile.Request {
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok || pv.Spec.ClaimRef == nil {
		return nil
	}
	found, err := index.PodsOfClaim(ctx, p.Host, hostpv.ClaimRefKey(pv))
	return p.requestsForPods(ctx, found, err)
}

// groupSelectorChanged admits the events of a Node that change which nodes of the member it represents.
func groupSelectorChanged(before, after client.Object) bool {
	return before == nil || after == nil || route.LabelsChanged(before, after) ||
		before.GetAnnotations()[v1alpha1.AnnotationNodeSelector] != after.GetAnnotations()[v1alpha1.AnnotationNodeSelector]
}

// groupNodeToPods enqueues the Pods that wait for the Node of a group of the member's nodes.
func (p *podMapper) groupNodeToPods(ctx context.Context, node client.Object) []reconcile.Request {
	name := node.GetName()
	if name == p.NodeName || !p.HasNode(name) {
		return nil
	}
	var requests []reconcile.Request
	if err := p.Router.VisitObjects(p.RouteOwner(), &corev1.Pod{}, metav1.NamespaceAll, func(obj client.Object) {
		pod, ok := obj.(*corev1.Pod)
		if ok && cmp.Or(pod.Spec.NodeName, pod.Status.NominatedNodeName) == name && podstatus.PushedStatus(pod) != corev1.ConditionTrue && !podstatus.IsPodFinished(pod) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pod)})
		}
	}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the Pods of a virtual node", "node", name)
	}
	return requests
}

// copyToPods enqueues the Pods that refer to the root of a copy.
func (p *podMapper) copyToPods(kind string) func(context.Context, client.Object) []reconcile.Request {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		origin, stamped := mirror.LeafOriginFromHost(p.HostID, obj)
		if !stamped {
			return nil
		}
		found, err := index.PodsOfReference(ctx, p.Host, kind, origin.Root)
		return p.requestsForPods(ctx, found, err)
	}
}

func (p *podMapper) namespaceToPods(ctx context.Context, namespace client.Object) []reconcile.Request {
	return p.namespaceNameToPods(ctx, namespace.GetName())
}

func (p *podMapper) namespaceNameToPods(ctx context.Context, namespace string) []reconcile.Request {
	var list corev1.PodList
	err := p.Host.List(ctx, &list, client.InNamespace(namespace), index.ReadOnly)
	return p.requestsForPods(ctx, list.Items, err)
}

// requestsForPods returns requests for those Pods that are unbound or bound to a node of this member.
func (p *podMapper) requestsForPods(ctx context.Context, found []corev1.Pod, err error) []reconcile.Request {
	return route.RequestsFor(ctx, found, err, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "" || p.HasNode(pod.Spec.NodeName) })
}
