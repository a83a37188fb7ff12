package rootpv

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
)

const (
	// Name of the controller.
	Name  = "root_pv"
	actor = guarded.Actor("root-pv")
	// workers see to the ends of volumes of one member side by side.
	workers = 8
)

// reconciler reconciles the host PVs whose leaf is in one member, by their
// names in the host.
type reconciler struct{ *member.Link }

// Setup adds the controller to a member's link.
func Setup(link *member.Link) error {
	r := &reconciler{link}
	return link.Controller(Name, workers, r,
		link.RootSource(&corev1.PersistentVolume{}, sameName),
		link.LeafSource(&corev1.PersistentVolume{}, r.ofLeaf),
		link.LeafSource(&corev1.PersistentVolumeClaim{}, r.ofLeafClaim),
	)
}

// Reconcile brings the end of one host PV a step further.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.observe(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.act(ctx, o, decide(o))
}

func (r *reconciler) observe(ctx context.Context, name string) (observed, error) {
	var o observed
	pv, err := index.Find[corev1.PersistentVolume](ctx, r.Host, index.Named(name))
	if err != nil || pv == nil {
		return o, err
	}
	cluster, leafName, leafUID, ours := mirror.LeafVolumeOf(pv)
	if !ours || cluster != r.ClusterID {
		return o, nil
	}
	o.host, o.leafName, o.leafUID = pv, leafName, leafUID
	leaf, err := index.Find[corev1.PersistentVolume](ctx, r.Cache, index.Named(leafName))
	if err != nil {
		return o, err
	}
	if leaf != nil && leaf.UID == leafUID {
		o.leaf = leaf
		o.origin, o.stamped = mirror.OriginIn(r.HostID, leaf)
	}
	ref := pv.Spec.ClaimRef
	if ref == nil {
		return o, nil
	}
	claim, origin, err := index.Leaf[corev1.PersistentVolumeClaim](ctx, r.Cache, r.HostID, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
	if claim != nil && origin.UID == ref.UID && claim.Spec.VolumeName == leafName {
		o.claim = claim
	}
	return o, err
}

func sameName(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: obj.GetName()}}}
}

// ofLeaf wakes the host PVs that stand for a leaf PV.
func (r *reconciler) ofLeaf(ctx context.Context, leaf client.Object) []reconcile.Request {
	return r.standFor(ctx, leaf.GetName())
}

// ofLeafClaim wakes the host PVs that stand for the volume of a leaf claim.
func (r *reconciler) ofLeafClaim(ctx context.Context, obj client.Object) []reconcile.Request {
	claim, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok || claim.Spec.VolumeName == "" {
		return nil
	}
	return r.standFor(ctx, claim.Spec.VolumeName)
}

func (r *reconciler) standFor(ctx context.Context, leaf string) []reconcile.Request {
	hosts, err := index.VolumesOfLeaf(ctx, r.Host, r.ClusterID, leaf)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "look up the host volumes of a leaf volume")
		return nil
	}
	var requests []reconcile.Request
	for i := range hosts {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: hosts[i].Name}})
	}
	return requests
}
