package member

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/route"
)

// ClaimsOfUnboundPod enqueues the claims of a root or leaf Pod that is not bound to a node.
func ClaimsOfUnboundPod(_ context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Spec.NodeName != "" {
		return nil
	}
	return route.ClaimRequestsOf(pod)
}

// ClaimAndSiblings enqueues a root or leaf claim and its siblings.
func (l *Link) ClaimAndSiblings(ctx context.Context, obj client.Object) []reconcile.Request {
	return append(RequestOfSameKey(ctx, obj), l.SiblingsOfBoundClaim(ctx, obj)...)
}

// SiblingsOfBoundClaim enqueues, when a root or leaf claim is bound, the claims of the host's Pods that use
// it and are not bound to a node. They may now be able to proceed, or need another member.
func (l *Link) SiblingsOfBoundClaim(ctx context.Context, obj client.Object) []reconcile.Request {
	claim, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok || claim.Spec.VolumeName == "" {
		return nil
	}
	return l.ClaimsOfSharingPods(ctx, claim)
}

// ClaimsOfSharingPods enqueues all claims of the host's Pods that use a given claim and are not bound to a
// node. They include that claim.
func (l *Link) ClaimsOfSharingPods(ctx context.Context, claim client.Object) []reconcile.Request {
	key := client.ObjectKeyFromObject(claim)
	pods, err := index.PodsOfClaim(ctx, l.Host, key)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the Pods that use a claim", "claim", key)
	}
	var requests []reconcile.Request
	for i := range pods {
		requests = append(requests, ClaimsOfUnboundPod(ctx, &pods[i])...)
	}
	return requests
}
