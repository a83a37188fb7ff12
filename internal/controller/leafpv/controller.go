package leafpv

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
)

const (
	// Name of the controller.
	Name  = "leaf_pv"
	actor = guarded.Actor("leaf-pv")
	// workers mirror volumes of one member side by side.
	workers = 8
)

// reconciler reconciles the PVs of a member, by their names there.
type reconciler struct {
	*member.Link
	orphans *orphans
}

// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;list;watch;create;patch;delete

// Setup adds the controller to a member's link.
func Setup(link *member.Link) error {
	r := &reconciler{Link: link, orphans: newOrphans(link)}
	return link.Controller(Name, workers, r,
		link.LeafSource(&corev1.PersistentVolume{}, sameName),
		link.LeafSource(&corev1.PersistentVolumeClaim{}, ofClaim),
		link.RootSource(&corev1.PersistentVolume{}, ofHostVolume),
		link.RootSource(&corev1.PersistentVolumeClaim{}, r.ofRootClaim),
	)
}

// Reconcile brings the mirror of one leaf PV a step further.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.observe(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	d := decide(o)
	r.orphans.set(request.Name, isOrphan(d))
	return reconcile.Result{}, r.act(ctx, o, d)
}

func (r *reconciler) observe(ctx context.Context, name string) (observed, error) {
	o := observed{member: r.Member}
	var err error
	if o.leaf, err = index.Find[corev1.PersistentVolume](ctx, r.Cache, index.Named(name)); err != nil || o.leaf == nil {
		return o, err
	}
	o.origin, o.stamped = mirror.OriginIn(r.HostID, o.leaf)
	if err := r.observeClaims(ctx, &o); err != nil {
		return o, err
	}
	if o.leftBehind, err = r.leftBehind(ctx, &o); err != nil {
		return o, err
	}
	hosts, err := index.VolumesOfLeaf(ctx, r.Host, r.ClusterID, name)
	if err != nil {
		return o, err
	}
	for i := range hosts {
		if _, _, uid, _ := mirror.LeafVolumeOf(&hosts[i]); uid == o.leaf.UID {
			o.host = &hosts[i]
		}
	}
	if o.host == nil {
		taken, err := index.Find[corev1.PersistentVolume](ctx, r.Host, index.Named(name))
		if err != nil {
			return o, err
		}
		o.nameTaken = taken != nil
	}
	if o.root != nil {
		o.class, err = index.Find[storagev1.StorageClass](ctx, r.Host, index.Named(ptr.Deref(o.root.Spec.StorageClassName, "")))
	}
	return o, err
}

// leftBehind reports whether a PV without our stamp is what a provisioner made
// for a leaf claim that had been withdrawn meanwhile: only a namespace that we
// made says that the claim was ours.
func (r *reconciler) leftBehind(ctx context.Context, o *observed) (bool, error) {
	ref := o.leaf.Spec.ClaimRef
	if o.stamped || o.claim != nil || ref == nil || o.leaf.Status.Phase != corev1.VolumeReleased ||
		o.leaf.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		return false, nil
	}
	namespace, err := index.Find[corev1.Namespace](ctx, r.Cache, index.Named(ref.Namespace))
	return mirror.MadeByUs(namespace, r.HostID), err
}

// observeClaims looks up the leaf claim that the PV is, or is to be, bound to,
// and the root claim of its origin.
func (r *reconciler) observeClaims(ctx context.Context, o *observed) error {
	key := o.origin.Root
	if ref := o.leaf.Spec.ClaimRef; ref != nil {
		key = types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	}
	for _, candidate := range []types.NamespacedName{key, o.origin.Root} {
		if err := r.observeClaim(ctx, o, candidate); err != nil {
			return err
		}
		if o.claim != nil {
			break
		}
	}
	if o.claim == nil && o.stamped {
		// Used again by a claim of another name: it is found by the host PV.
		if err := r.reused(ctx, o); err != nil {
			return err
		}
	}
	if o.claim != nil {
		o.origin = o.claimOrigin
	} else if !o.stamped {
		return nil
	}
	root, err := index.Find[corev1.PersistentVolumeClaim](ctx, r.Host, o.origin.Root)
	if root != nil && root.UID == o.origin.UID {
		o.root = root
	}
	return err
}

// observeClaim takes a claim of the member for the PV's if it is ours and names it.
func (r *reconciler) observeClaim(ctx context.Context, o *observed, key types.NamespacedName) error {
	claim, origin, err := index.Leaf[corev1.PersistentVolumeClaim](ctx, r.Cache, r.HostID, key)
	if claim != nil && claim.Spec.VolumeName == o.leaf.Name {
		o.claim, o.claimOrigin = claim, origin
	}
	return err
}

// reused looks for a leaf claim that asks for the PV by name because the host
// PV was bound to another root claim.
func (r *reconciler) reused(ctx context.Context, o *observed) error {
	hosts, err := index.VolumesOfLeaf(ctx, r.Host, r.ClusterID, o.leaf.Name)
	if err != nil {
		return err
	}
	for i := range hosts {
		ref := hosts[i].Spec.ClaimRef
		if ref == nil {
			continue
		}
		if err := r.observeClaim(ctx, o, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}); err != nil {
			return err
		}
		if o.claim != nil && o.claimOrigin.UID != ref.UID {
			o.claim = nil
		}
	}
	return nil
}

func sameName(_ context.Context, obj client.Object) []reconcile.Request { return named(obj.GetName()) }

func ofClaim(_ context.Context, obj client.Object) []reconcile.Request {
	claim, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok {
		return nil
	}
	return named(claim.Spec.VolumeName)
}

func ofHostVolume(_ context.Context, obj client.Object) []reconcile.Request {
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok || pv.Spec.CSI == nil {
		return nil
	}
	_, leaf, _, _ := mirror.LeafVolumeOf(pv)
	return named(leaf)
}

// ofRootClaim wakes the leaf PV of the leaf claim of that name.
func (r *reconciler) ofRootClaim(ctx context.Context, root client.Object) []reconcile.Request {
	var leaf corev1.PersistentVolumeClaim
	if err := r.Cache.Get(ctx, client.ObjectKeyFromObject(root), &leaf); err != nil {
		return nil
	}
	return named(leaf.Spec.VolumeName)
}

func named(name string) []reconcile.Request {
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}
