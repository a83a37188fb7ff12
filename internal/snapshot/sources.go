package snapshot

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
	"github.com/xylem-io/xylem/internal/route"
)

// EventSources returns the event sources for a controller of a member's snapshots.
func (o Observer) EventSources() []source.Source {
	return []source.Source{
		o.RootObjectSource(&snapshotv1.VolumeSnapshotContent{}, requestsWithSameName),
		o.HostSnapshotSource(&snapshotv1.VolumeSnapshot{}, o.snapshotToRequests),
		o.HostSnapshotSource(&snapshotv1.VolumeSnapshotClass{}, o.requestsWithoutLeaf),
		o.RootObjectSource(&corev1.PersistentVolume{}, o.OnlyOwnObjects(o.volumeToRequests), route.VolumeChanged),
		o.RootObjectSource(&corev1.Namespace{}, o.requestsInNamespace, route.LabelsChanged),
		o.LeafObjectSource(&corev1.PersistentVolumeClaim{}, o.leafClaimToRequests, route.ConcernsPredicate(route.LeafClaimChanged)),
		o.LeafSnapshotSource(&snapshotv1.VolumeSnapshot{}, o.leafToRequests),
		o.LeafSnapshotSource(&snapshotv1.VolumeSnapshotContent{}, o.leafContentToRequests),
		o.LeafSnapshotSource(&snapshotv1.VolumeSnapshotClass{}, o.requestsWithoutLeaf),
		o.Snapshots.ProblemChangeSource(func(ctx context.Context, _ string) []reconcile.Request { return o.requestsWhere(ctx, nil) }),
	}
}

func requestsForSnapshot(uid types.UID) []reconcile.Request {
	if uid == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: index.ClusterScopedKey(mirrorsnapshot.ContentName(uid))}}
}

func requestsWithSameName(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: index.ClusterScopedKey(obj.GetName())}}
}

// snapshotToRequests enqueues a host VolumeSnapshot's content, unless the content is placed in another
// member.
func (o Observer) snapshotToRequests(ctx context.Context, obj client.Object) []reconcile.Request {
	content, err := index.FindObject[snapshotv1.VolumeSnapshotContent](ctx, o.Host, index.ClusterScopedKey(mirrorsnapshot.ContentName(obj.GetUID())))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the content of a snapshot", "root", client.ObjectKeyFromObject(obj))
	}
	if placed := content != nil && mirrorsnapshot.ContentPlacedIn(content) != ""; placed && mirrorsnapshot.ContentPlacedIn(content) != o.ClusterID {
		return nil
	}
	return requestsForSnapshot(obj.GetUID())
}

// leafToRequests enqueues the root of a leaf VolumeSnapshot, and any root that waits for its name.
func (o Observer) leafToRequests(ctx context.Context, obj client.Object) []reconcile.Request {
	var found []reconcile.Request
	if origin, ours := mirror.LeafOriginFromHost(o.HostID, obj); ours {
		found = requestsForSnapshot(origin.UID)
	}
	return append(found, o.nameToRequests(ctx, client.ObjectKeyFromObject(obj))...)
}

// nameToRequests enqueues the content of the host's VolumeSnapshot with this name.
func (o Observer) nameToRequests(ctx context.Context, key types.NamespacedName) []reconcile.Request {
	if o.HostSnapshots.ServedCache() == nil {
		return nil
	}
	root, err := index.FindObject[snapshotv1.VolumeSnapshot](ctx, o.Host, key)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the root of a leaf snapshot", "root", key)
	}
	if root == nil {
		return nil
	}
	return requestsForSnapshot(root.UID)
}

// leafContentToRequests enqueues the root of a leaf content. It finds the root by the content's stamp, or
// by the stamp of the leaf VolumeSnapshot, which has the root's name.
func (o Observer) leafContentToRequests(ctx context.Context, obj client.Object) []reconcile.Request {
	content, ok := obj.(*snapshotv1.VolumeSnapshotContent)
	if !ok {
		return nil
	}
	var found []reconcile.Request
	if origin, ours := mirror.LeafOriginFromHost(o.HostID, content); ours {
		found = requestsForSnapshot(origin.UID)
	}
	key := mirrorsnapshot.RootSnapshotKey(content)
	leaf, origin, err := index.FindStamped[snapshotv1.VolumeSnapshot](ctx, o.LeafSnapshotCache(), o.HostID, key)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the leaf snapshot of a content", "leaf", content.Name)
	}
	if leaf != nil {
		return append(found, requestsForSnapshot(origin.UID)...)
	}
	return append(found, o.nameToRequests(ctx, key)...)
}

// leafClaimToRequests enqueues the snapshots of a leaf claim's root.
func (o Observer) leafClaimToRequests(ctx context.Context, obj client.Object) []reconcile.Request {
	return o.claimToRequests(ctx, client.ObjectKeyFromObject(obj))
}

// volumeToRequests enqueues the snapshots of the claim to which a host PV is bound.
func (o Observer) volumeToRequests(ctx context.Context, obj client.Object) []reconcile.Request {
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok || pv.Spec.ClaimRef == nil {
		return nil
	}
	return o.claimToRequests(ctx, hostpv.ClaimRefKey(pv))
}

func (o Observer) claimToRequests(ctx context.Context, claim types.NamespacedName) []reconcile.Request {
	if o.HostSnapshots.ServedCache() == nil {
		return nil
	}
	roots, err := index.SnapshotsOfClaim(ctx, o.Host, claim)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the snapshots of a claim", "root", claim)
	}
	var found []reconcile.Request
	for i := range roots {
		found = append(found, requestsForSnapshot(roots[i].UID)...)
	}
	return found
}

// requestsWithoutLeaf enqueues the host contents that have no leaf yet, because a changed class may allow the
// member to take their snapshots.
func (o Observer) requestsWithoutLeaf(ctx context.Context, _ client.Object) []reconcile.Request {
	return o.requestsWhere(ctx, func(content *snapshotv1.VolumeSnapshotContent) bool {
		return mirrorsnapshot.ContentRecordOf(content).Snapshot == ""
	})
}

// requestsInNamespace enqueues a namespace's contents that have no leaf yet, because the namespace's labels
// may determine whether the member admits it.
func (o Observer) requestsInNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	return o.requestsWhere(ctx, func(content *snapshotv1.VolumeSnapshotContent) bool {
		return mirrorsnapshot.RootSnapshotKey(content).Namespace == namespace.GetName() && mirrorsnapshot.ContentRecordOf(content).Snapshot == ""
	})
}

func (o Observer) requestsWhere(ctx context.Context, which func(*snapshotv1.VolumeSnapshotContent) bool) []reconcile.Request {
	var found []reconcile.Request
	if err := o.Router.VisitObjects(o.RouteOwner(), &snapshotv1.VolumeSnapshotContent{}, metav1.NamespaceAll, func(obj client.Object) {
		content, ok := obj.(*snapshotv1.VolumeSnapshotContent)
		if ok && (which == nil || which(content)) {
			found = append(found, requestsWithSameName(ctx, content)...)
		}
	}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the member's snapshots")
	}
	return found
}
