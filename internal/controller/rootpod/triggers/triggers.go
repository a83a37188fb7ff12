package triggers

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/refs"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/route/urgency"
)

// pods enqueues the host's Pods that concern one member.
type pods struct{ *member.Link }

// Sources returns the events to which root_pod reacts for one member.
func Sources(link *member.Link) []source.Source {
	p := &pods{link}
	return []source.Source{
		urgency.Unhurried(advances, link.RootSource(&corev1.Pod{}, member.SameKey, route.PodChanged)),
		urgency.Unhurried(urgency.Never, link.RootSource(&corev1.PersistentVolumeClaim{}, p.ofRootClaim, route.Of(route.PlacementOf))),
		urgency.Unhurried(urgency.Never, link.RootSource(&corev1.PersistentVolume{}, p.ofRootVolume, ofRecord)),
		link.RootSource(&corev1.Namespace{}, p.inNamespace),
		urgency.Unhurried(urgency.CreatedOrDeleted, link.LeafSource(&corev1.Pod{}, member.SameKey, route.Concerning(route.PodChanged))),
		urgency.Unhurried(urgency.CreatedOrDeleted, link.LeafSource(&corev1.PersistentVolumeClaim{}, p.ofRootClaim, route.Concerning(route.Of(route.PlacementOf)))), // the root claim has the same name
		link.LeafSource(&corev1.ConfigMap{}, p.ofCopy(refs.KindConfigMap)),
		link.LeafSource(&corev1.Secret{}, p.ofCopy(refs.KindSecret)),
		link.LeafSource(&corev1.Namespace{}, p.inNamespace),
		link.Rejections.Changes(p.inNamespaceNamed),
		link.LeafSource(&storagev1.StorageClass{}, p.ofLeafClass),
	}
}

// advances marks a change as urgent if it causes a Pod to be pushed, deleted or finished.
var advances = urgency.WhenChanged(func(pod *corev1.Pod) step {
	s := step{deleting: pod.DeletionTimestamp != nil, finished: podstatus.Finished(pod), debugged: len(pod.Spec.EphemeralContainers)}
	if podstatus.Pushed(pod) != corev1.ConditionTrue {
		s.node, s.nominated = pod.Spec.NodeName, pod.Status.NominatedNodeName
	}
	return s
})

type step struct {
	node, nominated    string
	deleting, finished bool
	debugged           int
}

// ofRecord is a predicate that admits all changes to a host PV except those to its status.
func ofRecord(before, after client.Object) bool {
	was, known := before.(*corev1.PersistentVolume)
	is, ok := after.(*corev1.PersistentVolume)
	return !known || !ok || was.UID != is.UID || route.FinalizersChanged(was, is) || !equality.Semantic.DeepEqual(was.Spec, is.Spec) ||
		!maps.Equal(was.Labels, is.Labels) || !maps.Equal(was.Annotations, is.Annotations)
}

// ofRootClaim enqueues the Pods that use a claim.
func (p *pods) ofRootClaim(ctx context.Context, claim client.Object) []reconcile.Request {
	found, err := index.PodsOfClaim(ctx, p.Host, client.ObjectKeyFromObject(claim))
	return p.requests(ctx, found, err)
}

// ofLeafClass enqueues the Pods that have unbound leaf claims of a StorageClass in the member. The
// class's binding mode determines when they are pushed, and the class may be created after the
// claims.
func (p *pods) ofLeafClass(ctx context.Context, class client.Object) []reconcile.Request {
	var claims corev1.PersistentVolumeClaimList
	if err := p.Cache.List(ctx, &claims, index.ReadOnly); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not list the leaf claims of a StorageClass")
		return nil
	}
	var requests []reconcile.Request
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.Spec.VolumeName == "" && ptr.Deref(claim.Spec.StorageClassName, "") == class.GetName() {
			requests = append(requests, p.ofRootClaim(ctx, claim)...) // the root claim has the same name
		}
	}
	return requests
}

// ofRootVolume enqueues the Pods that use the claim of a host PV.
func (p *pods) ofRootVolume(ctx context.Context, obj client.Object) []reconcile.Request {
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok || pv.Spec.ClaimRef == nil {
		return nil
	}
	found, err := index.PodsOfClaim(ctx, p.Host, hostpv.ClaimKey(pv))
	return p.requests(ctx, found, err)
}

// ofCopy enqueues the Pods that refer to the root of a copy.
func (p *pods) ofCopy(kind string) func(context.Context, client.Object) []reconcile.Request {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		origin, stamped := mirror.OriginIn(p.HostID, obj)
		if !stamped {
			return nil
		}
		found, err := index.PodsOfReference(ctx, p.Host, kind, origin.Root)
		return p.requests(ctx, found, err)
	}
}

func (p *pods) inNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	return p.inNamespaceNamed(ctx, namespace.GetName())
}

func (p *pods) inNamespaceNamed(ctx context.Context, namespace string) []reconcile.Request {
	var list corev1.PodList
	err := p.Host.List(ctx, &list, client.InNamespace(namespace), index.ReadOnly)
	return p.requests(ctx, list.Items, err)
}

// requests returns requests for those Pods that are unbound or bound to this member's node.
func (p *pods) requests(ctx context.Context, found []corev1.Pod, err error) []reconcile.Request {
	return route.RequestsFor(ctx, found, err, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "" || pod.Spec.NodeName == p.NodeName })
}
