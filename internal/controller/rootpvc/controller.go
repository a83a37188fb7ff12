package rootpvc

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/backlog"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror/hostclass"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/volume"
)

const (
	// Name of the controller.
	Name  = "root_pvc"
	actor = guarded.Actor("root-pvc")
	// workers push claims of one member side by side; each is at most a write
	// or two away from waiting for a watch.
	workers = 8
)

// reconciler reconciles the claims of the host that concern one member, by the
// name that root and leaf have in common.
type reconciler struct {
	*member.Link
	Options
	pace *pace
}

// Options of the controller in all members.
type Options struct {
	// Namespace of the manager in the host, where its records are.
	Namespace string
	// Book says which orphans other members have.
	Book *account.Book
	// Mirrors that were created for claims.
	Mirrors *account.Mirrors
	// Passages are measured from the placement on.
	Passages *account.Passages
	// Gate holds claims back that the host could not bind yet.
	Gate *backlog.Gate
	// NominatedNode says that the host's scheduler shows in a Pod's status which
	// node it is about to bind it to; see root_pod.
	NominatedNode bool
}

// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=list;watch

// Setup adds the controller to a member's link.
func Setup(link *member.Link, o Options) error {
	r := &reconciler{link, o, newPace()}
	return link.Controller(Name, workers, r,
		route.Unhurried(placing, link.RootSource(&corev1.PersistentVolumeClaim{}, r.ofRootClaim, rootClaimChanged)),
		route.Unhurried(promising, link.RootSource(&corev1.PersistentVolume{}, r.ofRootVolume, route.VolumeChanged)),
		link.RootSource(&corev1.Pod{}, r.ofPod, route.PodChanged),
		link.RootSource(&storagev1.StorageClass{}, r.waiting),
		link.RootSource(&corev1.Namespace{}, r.inRootNamespace),
		route.Unhurried(route.Never, link.RootSource(&corev1.Pod{}, member.ClaimsOfWaiting, route.PodChanged)),
		route.Unhurried(route.Goes, link.LeafSource(&corev1.PersistentVolumeClaim{}, r.ofLeafClaim, route.Concerning(route.LeafClaimChanged))),
		route.Unhurried(route.Never, link.LeafSource(&corev1.PersistentVolume{}, r.ofLeafVolume, route.Concerning(route.VolumeChanged))),
		route.Unhurried(route.Never, link.LeafSource(&corev1.Pod{}, r.ofLeafPod, route.Concerning(route.PodChanged))),
		route.Unhurried(route.Never, link.LeafSource(&corev1.Event{}, r.ofWarning)),
		link.LeafSource(&storagev1.StorageClass{}, r.waiting),
		link.LeafSource(&corev1.Namespace{}, r.inNamespace),
		r.Book.FoundSource(r.rivals),
		r.Gate.Source(r.ClusterID, r.Registration),
	)
}

// rootClaimChanged: of a root claim, metadata, spec and conditions count, and whether the PV
// controller has asked for its volume.
func rootClaimChanged(before, after client.Object) bool {
	was, known := before.(*corev1.PersistentVolumeClaim)
	is, ok := after.(*corev1.PersistentVolumeClaim)
	return !known || !ok || route.ClaimChanged(was, is) || !equality.Semantic.DeepEqual(was.Status.Conditions, is.Status.Conditions) ||
		was.Annotations[volumehelpers.AnnStorageProvisioner] != is.Annotations[volumehelpers.AnnStorageProvisioner]
}

// placing is Urgent for the two steps by which a claim is placed: the PV controller asks for
// its volume, and Xylem records the member.
var placing = route.WhenChanged(func(claim *corev1.PersistentVolumeClaim) [2]string {
	return [2]string{claim.Annotations[volumehelpers.AnnStorageProvisioner], claim.Annotations[v1alpha1.AnnotationPlacedIn]}
})

// promising is Urgent for promises that have no disk: Pods wait for each step.
func promising(_ context.Context, _, after client.Object) bool {
	pv, ok := after.(*corev1.PersistentVolume)
	return ok && hostpv.IsUnfulfilled(pv)
}

// Reconcile brings one claim a step further.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.observe(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	d := decide(o)
	if _, placing := d.(place); !placing {
		r.Gate.Leave(r.ClusterID, request.NamespacedName)
	}
	if err := r.act(ctx, o, d); err != nil || o.root == nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: r.pace.owes(o.root.UID)}, nil
}

func (r *reconciler) observe(ctx context.Context, key types.NamespacedName) (observed, error) {
	o := observed{member: r.Member, rules: r.Rules, restores: r.LastRestores()}
	var err error
	if o.root, err = index.Find[corev1.PersistentVolumeClaim](ctx, r.Host, key); err != nil {
		return o, err
	}
	if o.leaf, o.origin, err = index.Leaf[corev1.PersistentVolumeClaim](ctx, r.Cache, r.HostID, key); err != nil {
		return o, err
	}
	if o.volume, err = (volume.Observer{Prover: r.Proof()}).OfClaim(ctx, o.root, o.leaf, o.origin); err != nil {
		return o, err
	}
	o.refresh()
	if o.leaf != nil {
		if err = r.observeLeafVolume(ctx, &o); err != nil {
			return o, err
		}
		if o.leafClass, err = index.Find[storagev1.StorageClass](ctx, r.Cache, index.Named(ptr.Deref(o.leaf.Spec.StorageClassName, ""))); err != nil {
			return o, err
		}
	}
	if o.root == nil {
		return o, nil
	}
	if err := r.observeVolume(ctx, &o); err != nil {
		return o, err
	}
	if err := r.observePlacement(ctx, &o); err != nil {
		return o, err
	}
	if err := r.observePlace(ctx, &o); err != nil {
		return o, err
	}
	err = r.observeAttempt(ctx, &o)
	return o, err
}

// observeLeafVolume looks up the PV of a leaf claim that no snapshot has.
func (r *reconciler) observeLeafVolume(ctx context.Context, o *observed) error {
	switch {
	case o.volume != nil:
		o.leafVolume = o.volume.Leaf
	case o.leaf.Spec.VolumeName == "":
		made, err := index.VolumesForClaim(ctx, r.Cache, o.leaf.UID)
		if len(made) > 0 {
			o.leafVolume = &made[0]
		}
		return err
	default:
		var err error
		o.leafVolume, err = index.Find[corev1.PersistentVolume](ctx, r.Cache, index.Named(o.leaf.Spec.VolumeName))
		return err
	}
	return nil
}

// observeVolume looks up the host PV that the root is bound to, unless it is of this member.
func (r *reconciler) observeVolume(ctx context.Context, o *observed) error {
	if o.root.Spec.VolumeName == "" {
		return r.observeMirror(ctx, o)
	}
	pv, err := index.Find[corev1.PersistentVolume](ctx, r.Host, index.Named(o.root.Spec.VolumeName))
	if err == nil && pv == nil {
		o.lost = hostpv.NamesPromise(o.root.Spec.VolumeName)
		return r.observeAsked(ctx, o)
	}
	if err != nil || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID != o.root.UID {
		return err
	}
	if hostpv.IsUnfulfilled(pv) {
		return r.observePromise(ctx, o, pv)
	}
	if cluster, _, _, ours := hostpv.LeafOf(pv); !ours || cluster != r.ClusterID {
		o.boundAway = o.leaf == nil || !hostpv.RecordsLeaf(pv, r.ClusterID, o.leaf.Spec.VolumeName)
	}
	return nil
}

// observeMirror looks up the host PV that was made for a root that is not bound yet.
func (r *reconciler) observeMirror(ctx context.Context, o *observed) error {
	hosts, err := index.VolumesOfClaim(ctx, r.Host, client.ObjectKeyFromObject(o.root))
	for i := range hosts {
		if cluster, _, _, _ := hostpv.LeafOf(&hosts[i]); cluster == r.ClusterID && hosts[i].Spec.ClaimRef.UID == o.root.UID {
			o.mirror = &hosts[i]
		}
	}
	return err
}

// observePlacement looks up the name of the other member that the root is placed in.
func (r *reconciler) observePlacement(ctx context.Context, o *observed) error {
	placed := o.root.Annotations[v1alpha1.AnnotationPlacedIn]
	if placed == "" || placed == r.ClusterID {
		return nil
	}
	registrations, err := index.RegistrationsOf(ctx, r.Host, placed)
	if len(registrations) > 0 {
		o.placedName = registrations[0].Name
	}
	if o.volume != nil {
		o.volume.PlacedIn = o.placedName
	}
	return err
}

// observeAsked looks up the leaf PV that the root asks for by name, if the host has
// no PV for it.
func (r *reconciler) observeAsked(ctx context.Context, o *observed) error {
	candidate := o.leafVolume
	if candidate == nil || o.leaf.Spec.VolumeName == "" {
		var err error
		if candidate, err = index.Find[corev1.PersistentVolume](ctx, r.Cache, index.Named(o.root.Spec.VolumeName)); err != nil {
			return err
		}
	}
	if candidate == nil || !hostpv.AsksFor(o.root, candidate, r.Member) {
		return nil
	}
	hosts, err := index.VolumesOfLeaf(ctx, r.Host, r.ClusterID, candidate.Name)
	if err != nil || len(hosts) > 0 {
		return err
	}
	namespace, err := index.Find[corev1.Namespace](ctx, r.Host, index.Named(o.root.Namespace))
	if err != nil {
		return err
	}
	if namespace == nil {
		return fmt.Errorf("namespace %s, whose claim asks for volume %s, is not in the cache yet", o.root.Namespace, candidate.Name)
	}
	o.asked, o.tenant = candidate, namespace.UID
	o.rivals = r.Book.Rivals(r.Registration, candidate.Name, client.ObjectKeyFromObject(o.root))
	return nil
}

// observePlace looks up the classes on both sides, the member's node and its namespace.
func (r *reconciler) observePlace(ctx context.Context, o *observed) error {
	var err error
	if o.promise != nil {
		o.class, err = r.promiseClass(ctx, o.promise)
	} else {
		o.class, err = index.Find[storagev1.StorageClass](ctx, r.Host, index.Named(hostclass.NameOf(o.root)))
	}
	if err != nil {
		return err
	}
	if hostclass.Own(o.class) {
		var classes storagev1.StorageClassList
		if err := r.Cache.List(ctx, &classes, index.ReadOnly); err != nil {
			return fmt.Errorf("list the member's storage classes: %w", err)
		}
		for i := range classes.Items {
			o.memberClasses = append(o.memberClasses, classes.Items[i].Name)
		}
		if o.node, err = index.Find[corev1.Node](ctx, r.Host, index.Named(r.NodeName)); err != nil {
			return err
		}
	}
	o.namespace, err = index.Find[corev1.Namespace](ctx, r.Cache, index.Named(o.root.Namespace))
	return err
}

// ofHostVolume wakes the claim that a host PV is for.
func ofHostVolume(_ context.Context, obj client.Object) []reconcile.Request {
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok || pv.Spec.ClaimRef == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pv.Spec.ClaimRef.Namespace, Name: pv.Spec.ClaimRef.Name}}}
}

// ofLeafClaim enqueues the root of a leaf claim, its siblings, and the root that has, or is to
// have, the volume that the leaf claim names.
func (r *reconciler) ofLeafClaim(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := r.WithSiblings(ctx, obj)
	if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok && claim.Spec.VolumeName != "" {
		requests = append(requests, r.ofLeaf(ctx, claim.Spec.VolumeName)...)
	}
	return requests
}

// ofLeafVolume enqueues the root of the leaf claim that a leaf PV is for, and those of host PVs
// that represent it.
func (r *reconciler) ofLeafVolume(ctx context.Context, obj client.Object) []reconcile.Request {
	return append(ofHostVolume(ctx, obj), r.ofLeaf(ctx, obj.GetName())...)
}

// ofLeaf are the roots of the host PVs that represent a leaf PV.
func (r *reconciler) ofLeaf(ctx context.Context, name string) []reconcile.Request {
	hosts, err := index.VolumesOfLeaf(ctx, r.Host, r.ClusterID, name)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "look up the host volumes of a leaf volume")
		return nil
	}
	var requests []reconcile.Request
	for i := range hosts {
		requests = append(requests, ofHostVolume(ctx, &hosts[i])...)
	}
	return requests
}

// waiting wakes the claims that wait for something here: a class that came or
// went may let them go on.
func (r *reconciler) waiting(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.claims(ctx, metav1.NamespaceAll, func(claim *corev1.PersistentVolumeClaim) bool {
		return r.asks(claim) || chosen(claim, r.Member) && (claim.Spec.VolumeName == "" || hostpv.NamesPromise(claim.Spec.VolumeName))
	})
}

// rivals wakes the claims that ask for a volume by its name: an orphan that was found
// or is gone in another member may be of that name as well.
func (r *reconciler) rivals(ctx context.Context, registration string) []reconcile.Request {
	if registration == r.Registration {
		return nil
	}
	return r.claims(ctx, metav1.NamespaceAll, r.asks)
}

// asks reports whether a claim asks for a volume that was there before it, has it not
// yet, and may find it here.
func (r *reconciler) asks(claim *corev1.PersistentVolumeClaim) bool {
	placed := claim.Annotations[v1alpha1.AnnotationPlacedIn]
	return claim.Spec.VolumeName != "" && claim.Status.Phase != corev1.ClaimBound && (placed == "" || placed == r.ClusterID)
}

// inNamespace wakes the claims of a namespace of the member.
func (r *reconciler) inNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	return r.claims(ctx, namespace.GetName(), func(claim *corev1.PersistentVolumeClaim) bool { return chosen(claim, r.Member) })
}

// inRootNamespace enqueues the claims of a namespace of the host that ask for a volume by
// name: whether they may have it depends on whose the namespace is.
func (r *reconciler) inRootNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	return r.claims(ctx, namespace.GetName(), r.asks)
}

// claims of a namespace, or of all, that concern this member and are wanted.
func (r *reconciler) claims(ctx context.Context, namespace string, wanted func(*corev1.PersistentVolumeClaim) bool) []reconcile.Request {
	var requests []reconcile.Request
	if err := r.Router.Each(r.Owner(), &corev1.PersistentVolumeClaim{}, namespace, func(obj client.Object) {
		if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok && wanted(claim) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(claim)})
		}
	}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "look up the claims of a member")
	}
	return requests
}
