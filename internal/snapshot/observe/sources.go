package observe

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

// Sources returns the event sources for a controller of a member's snapshots.
func (o Observer) Sources() []source.Source {
	return []source.Source{
		o.RootSource(&snapshotv1.VolumeSnapshotContent{}, sameName),
		o.HostSnapshotSource(&snapshotv1.VolumeSnapshot{}, o.ofSnapshot),
		o.HostSnapshotSource(&snapshotv1.VolumeSnapshotClass{}, o.unplaced),
		o.RootSource(&corev1.PersistentVolume{}, o.Own(o.ofVolume), route.VolumeChanged),
		o.RootSource(&corev1.Namespace{}, o.inNamespace, route.Relabelled),
		o.LeafSource(&corev1.PersistentVolumeClaim{}, o.ofLeafClaim, route.Concerning(route.LeafClaimChanged)),
		o.LeafSnapshotSource(&snapshotv1.VolumeSnapshot{}, o.ofLeaf),
		o.LeafSnapshotSource(&snapshotv1.VolumeSnapshotContent{}, o.ofLeafContent),
		o.LeafSnapshotSource(&snapshotv1.VolumeSnapshotClass{}, o.unplaced),
		o.Snapshots.Changes(func(ctx context.Context, _ string) []reconcile.Request { return o.all(ctx, nil) }),
	}
}

func named(uid types.UID) []reconcile.Request {
	if uid == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: index.Named(mirrorsnapshot.ContentName(uid))}}
}

func sameName(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: index.Named(obj.GetName())}}
}

// ofSnapshot enqueues a host VolumeSnapshot's content, unless the content is placed in another
// member.
func (o Observer) ofSnapshot(ctx context.Context, obj client.Object) []reconcile.Request {
	content, err := index.Find[snapshotv1.VolumeSnapshotContent](ctx, o.Host, index.Named(mirrorsnapshot.ContentName(obj.GetUID())))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the content of a snapshot", "root", client.ObjectKeyFromObject(obj))
	}
	if placed := content != nil && mirrorsnapshot.PlacedIn(content) != ""; placed && mirrorsnapshot.PlacedIn(content) != o.ClusterID {
		return nil
	}
	return named(obj.GetUID())
}

// ofLeaf enqueues the root of a leaf VolumeSnapshot, and any root that waits for its name.
func (o Observer) ofLeaf(ctx context.Context, obj client.Object) []reconcile.Request {
	var found []reconcile.Request
	if origin, ours := mirror.OriginIn(o.HostID, obj); ours {
		found = named(origin.UID)
	}
	return append(found, o.ofName(ctx, client.ObjectKeyFromObject(obj))...)
}

// ofName enqueues the content of the host's VolumeSnapshot with this name.
func (o Observer) ofName(ctx context.Context, key types.NamespacedName) []reconcile.Request {
	if o.HostSnapshots.Cache() == nil {
		return nil
	}
	root, err := index.Find[snapshotv1.VolumeSnapshot](ctx, o.Host, key)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the root of a leaf snapshot", "root", key)
	}
	if root == nil {
		return nil
	}
	return named(root.UID)
}

// ofLeafContent enqueues the root of a leaf content. It finds the root by the content's stamp, or
// by the stamp of the leaf VolumeSnapshot, which has the root's name.
func (o Observer) ofLeafContent(ctx context.Context, obj client.Object) []reconcile.Request {
	content, ok := obj.(*snapshotv1.VolumeSnapshotContent)
	if !ok {
		return nil
	}
	var found []reconcile.Request
	if origin, ours := mirror.OriginIn(o.HostID, content); ours {
		found = named(origin.UID)
	}
	key := mirrorsnapshot.RootOf(content)
	leaf, origin, err := index.Leaf[snapshotv1.VolumeSnapshot](ctx, o.LeafSnapshots(), o.HostID, key)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the leaf snapshot of a content", "leaf", content.Name)
	}
	if leaf != nil {
		return append(found, named(origin.UID)...)
	}
	return append(found, o.ofName(ctx, key)...)
}

// ofLeafClaim enqueues the snapshots of a leaf claim's root.
func (o Observer) ofLeafClaim(ctx context.Context, obj client.Object) []reconcile.Request {
	return o.ofClaim(ctx, client.ObjectKeyFromObject(obj))
}

// ofVolume enqueues the snapshots of the claim to which a host PV is bound.
func (o Observer) ofVolume(ctx context.Context, obj client.Object) []reconcile.Request {
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok || pv.Spec.ClaimRef == nil {
		return nil
	}
	return o.ofClaim(ctx, hostpv.ClaimKey(pv))
}

func (o Observer) ofClaim(ctx context.Context, claim types.NamespacedName) []reconcile.Request {
	if o.HostSnapshots.Cache() == nil {
		return nil
	}
	roots, err := index.SnapshotsOfClaim(ctx, o.Host, claim)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the snapshots of a claim", "root", claim)
	}
	var found []reconcile.Request
	for i := range roots {
		found = append(found, named(roots[i].UID)...)
	}
	return found
}

// unplaced enqueues the host contents that have no leaf yet, because a changed class may allow the
// member to take their snapshots.
func (o Observer) unplaced(ctx context.Context, _ client.Object) []reconcile.Request {
	return o.all(ctx, func(content *snapshotv1.VolumeSnapshotContent) bool {
		return mirrorsnapshot.RecordOf(content).Snapshot == ""
	})
}

// inNamespace enqueues a namespace's contents that have no leaf yet, because the namespace's labels
// may determine whether the member admits it.
func (o Observer) inNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	return o.all(ctx, func(content *snapshotv1.VolumeSnapshotContent) bool {
		return mirrorsnapshot.RootOf(content).Namespace == namespace.GetName() && mirrorsnapshot.RecordOf(content).Snapshot == ""
	})
}

func (o Observer) all(ctx context.Context, which func(*snapshotv1.VolumeSnapshotContent) bool) []reconcile.Request {
	var found []reconcile.Request
	if err := o.Router.Each(o.Owner(), &snapshotv1.VolumeSnapshotContent{}, metav1.NamespaceAll, func(obj client.Object) {
		content, ok := obj.(*snapshotv1.VolumeSnapshotContent)
		if ok && (which == nil || which(content)) {
			found = append(found, sameName(ctx, content)...)
		}
	}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the member's snapshots")
	}
	return found
}
