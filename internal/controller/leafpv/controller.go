package leafpv

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/internal/account"
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
	Options
}

// Options of the controller in all members.
type Options struct {
	// Book in which suspicions of orphans are noted.
	Book *account.Book
	// Mirrors that were created for claims.
	Mirrors *account.Mirrors
}

// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;list;watch;create;patch;delete

// Setup adds the controller to a member's link.
func Setup(link *member.Link, o Options) error {
	r := &reconciler{Link: link, Options: o}
	return link.Controller(Name, workers, r,
		link.LeafSource(&corev1.PersistentVolume{}, sameName),
		link.LeafSource(&corev1.PersistentVolumeClaim{}, ofClaim),
		link.RootSource(&corev1.PersistentVolume{}, link.Own(r.ofHostVolume)),
		link.RootSource(&corev1.PersistentVolumeClaim{}, r.ofRootClaim),
		link.RootSource(&storagev1.StorageClass{}, r.asking),
	)
}

// Reconcile brings the mirror of one leaf PV a step further.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.observe(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if o.leaf == nil {
		r.Book.Gone(r.Registration, request.Name)
		return reconcile.Result{}, nil
	}
	r.forget(o)
	d := decide(o)
	r.Book.Suspect(r.Registration, request.Name, suspicious(o, d))
	return reconcile.Result{}, r.act(ctx, o, d)
}

// forget which host PV was created for a root that is bound to one, or gone with one.
func (r *reconciler) forget(o observed) {
	switch {
	case o.root != nil && o.root.Spec.VolumeName != "":
		r.Mirrors.Forget(o.root.UID)
	case o.root == nil && o.host != nil:
		r.Mirrors.Forget(o.origin.UID)
	}
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
	if err := r.observeHost(ctx, &o); err != nil {
		return o, err
	}
	err = r.observeRoot(ctx, &o)
	return o, err
}

// observeHost looks up the host PV that stands for the leaf, or what there is in its
// place. Each read shows the cache as it is then: a PV that came after the first one, and
// is found by a later, stands for the leaf as well, and is not in the way.
func (r *reconciler) observeHost(ctx context.Context, o *observed) error {
	stands := func(pv *corev1.PersistentVolume) bool {
		if pv != nil && r.standsFor(pv, o.leaf) {
			o.host = pv
		}
		return o.host != nil
	}
	hosts, err := index.VolumesOfLeaf(ctx, r.Host, r.ClusterID, o.leaf.Name)
	if err != nil {
		return err
	}
	o.remembered = len(hosts) > 0 || o.claim != nil && r.LastRestores().Predates(o.claim)
	for i := range hosts {
		if stands(&hosts[i]) {
			return nil
		}
		o.replaced = &hosts[i]
	}
	promise, err := index.PromiseOf(ctx, r.Host, o.origin.UID)
	if err != nil || stands(promise) {
		return err
	}
	o.promise = promise
	if o.lost, err = r.lost(ctx, o.root); err != nil {
		return err
	}
	for _, name := range []struct {
		collides bool
		taken    *bool
	}{{false, &o.nameTaken}, {true, &o.suffixTaken}} {
		pv, err := index.Find[corev1.PersistentVolume](ctx, r.Host, index.Named(mirror.HostVolumeName(o.leaf.Name, r.ClusterID, name.collides)))
		if err != nil || stands(pv) {
			return err
		}
		*name.taken = pv != nil
	}
	return nil
}

// standsFor reports whether a host PV is the mirror of this very leaf PV.
func (r *reconciler) standsFor(host, leaf *corev1.PersistentVolume) bool {
	cluster, _, uid, ours := mirror.LeafVolumeOf(host)
	return ours && cluster == r.ClusterID && uid == leaf.UID
}

// consumers are the Pods here that a promise was fulfilled for: they get an event.
func (r *reconciler) consumers(ctx context.Context, root *corev1.PersistentVolumeClaim) []corev1.Pod {
	if root == nil {
		return nil
	}
	pods, err := index.PodsOfClaim(ctx, r.Host, client.ObjectKeyFromObject(root))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "look up the Pods of a promise that was fulfilled", "root", client.ObjectKeyFromObject(root))
	}
	return slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return pod.Spec.NodeName != r.NodeName || mirror.Finished(&pod) })
}

// lost reports whether a claim is bound to a promise that the host does not have.
func (r *reconciler) lost(ctx context.Context, root *corev1.PersistentVolumeClaim) (bool, error) {
	if root == nil || !mirror.NamesPromise(root.Spec.VolumeName) {
		return false, nil
	}
	there, err := index.Find[corev1.PersistentVolume](ctx, r.Host, index.Named(root.Spec.VolumeName))
	return there == nil && err == nil, err
}

// observeRoot looks up the class and the namespace of the root, or of the claim
// that asks for the volume.
func (r *reconciler) observeRoot(ctx context.Context, o *observed) error {
	claim := o.root
	if claim == nil {
		claim = o.asking
	}
	if claim == nil {
		return nil
	}
	var err error
	if o.class, err = index.Find[storagev1.StorageClass](ctx, r.Host, index.Named(mirror.ClassName(claim))); err != nil {
		return err
	}
	namespace, err := index.Find[corev1.Namespace](ctx, r.Host, index.Named(claim.Namespace))
	if err != nil {
		return err
	}
	if namespace == nil {
		return fmt.Errorf("namespace %s of claim %s is not in the cache yet", claim.Namespace, claim.Name)
	}
	o.tenant = namespace.UID
	return nil
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
	switch {
	case root == nil:
	case root.UID == o.origin.UID:
		o.root = root
	case mirror.AsksFor(root, o.leaf, r.Member):
		o.asking = root
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

// ofHostVolume wakes the leaf PV that a host PV stands for, or, of a promise, the
// one that is to fulfil it.
func (r *reconciler) ofHostVolume(ctx context.Context, obj client.Object) []reconcile.Request {
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok || pv.Spec.CSI == nil {
		return nil
	}
	if mirror.IsUnfulfilled(pv) && pv.Spec.ClaimRef != nil {
		return r.ofLeafClaim(ctx, types.NamespacedName{Namespace: pv.Spec.ClaimRef.Namespace, Name: pv.Spec.ClaimRef.Name})
	}
	_, leaf, _, _ := mirror.LeafVolumeOf(pv)
	return named(leaf)
}

// ofRootClaim wakes the leaf PV of the leaf claim of that name, and the one that
// the root asks for.
func (r *reconciler) ofRootClaim(ctx context.Context, root client.Object) []reconcile.Request {
	return append(ofClaim(ctx, root), r.ofLeafClaim(ctx, client.ObjectKeyFromObject(root))...)
}

// ofLeafClaim wakes the volume that a leaf claim names.
func (r *reconciler) ofLeafClaim(ctx context.Context, key types.NamespacedName) []reconcile.Request {
	var leaf corev1.PersistentVolumeClaim
	if err := r.Cache.Get(ctx, key, &leaf); err != nil {
		return nil
	}
	return named(leaf.Spec.VolumeName)
}

// asking enqueues the volumes that claims of a class ask for by name: with it, they may have
// them.
func (r *reconciler) asking(ctx context.Context, class client.Object) []reconcile.Request {
	var found []reconcile.Request
	if err := r.Router.Each(r.Owner(), &corev1.PersistentVolumeClaim{}, metav1.NamespaceAll, func(obj client.Object) {
		claim, ok := obj.(*corev1.PersistentVolumeClaim)
		if ok && claim.Spec.VolumeName != "" && claim.Status.Phase != corev1.ClaimBound && mirror.ClassName(claim) == class.GetName() {
			found = append(found, named(claim.Spec.VolumeName)...)
		}
	}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "look up the claims that ask for volumes")
	}
	return found
}

func named(name string) []reconcile.Request {
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}
