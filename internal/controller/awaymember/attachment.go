package awaymember

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/nodes"
	"github.com/xylem-io/xylem/internal/route"
)

const (
	// AttachmentName is the name of the controller of claims.
	AttachmentName = "away_attachment"
	// attachmentActor is the field owner of the condition. leaf_pvc uses it too.
	attachmentActor = guarded.Actor("leaf-attachment")
	// attachmentWorkers is the number of concurrent reconciles. Each makes a few cached reads, and one
	// write when a member goes away.
	attachmentWorkers = 2
)

// attachedChanged reports whether an update of a root claim changes its volume or the condition.
var attachedChanged = route.PartChanged(func(claim *corev1.PersistentVolumeClaim) [6]string {
	c := report.AttachedConditionValue(claim)
	return [6]string{string(claim.UID), claim.Spec.VolumeName, string(claim.Status.Phase), c[0], c[1], c[2]}
})

// hostVolumeChanged reports whether an update of a host PV changes the leaf PV that it represents, or
// its claim.
var hostVolumeChanged = route.PartChanged(func(pv *corev1.PersistentVolume) [4]string {
	cluster, leaf, uid, _ := hostpv.LeafOfHostVolume(pv)
	return [4]string{cluster, leaf, string(uid), string(ptr.Deref(pv.Spec.ClaimRef, corev1.ObjectReference{}).UID)}
})

// AttachmentReconciler reconciles the claims on which no Link reports.
type AttachmentReconciler struct {
	// Client reads the host's cache and writes to the host.
	Client client.Client
	// Fleet reports whether the members are connected.
	Fleet Fleet
	// Clock provides the times of conditions.
	Clock clock.PassiveClock

	root *guarded.HostWriter
}

// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims;persistentvolumes;nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.xylem.io,resources=clusterregistrations,verbs=get;list;watch

// SetupWithManager adds the controller away_attachment.
func (r *AttachmentReconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.root = guarded.NewHostWriter(r.Client, "", guarded.HostOnlyGuard{})
	return ctrl.NewControllerManagedBy(mgr).
		Named(AttachmentName).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(r.ofClaim), builder.WithPredicates(route.ConcernsPredicate(attachedChanged))).
		Watches(&corev1.PersistentVolume{}, handler.EnqueueRequestsFromMapFunc(r.volumeToRequests), builder.WithPredicates(route.SinceStartPredicate(), route.ConcernsPredicate(hostVolumeChanged))).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.nodeToRequests), builder.WithPredicates(route.ConcernsPredicate(route.PartChanged(nodes.MemberAway)))).
		Watches(&v1alpha1.ClusterRegistration{}, handler.EnqueueRequestsFromMapFunc(r.registrationToRequests), builder.WithPredicates(route.SinceStartPredicate(), route.ConcernsPredicate(route.PartChanged(index.RegistrationStateOf)))).
		WithEventFilter(route.ChangedPredicate()).
		WithOptions(controller.Options{MaxConcurrentReconciles: attachmentWorkers}).
		Complete(guarded.WrapReconciler(r))
}

// Reconcile reconciles one root claim.
func (r *AttachmentReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	root, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, r.Client, request.NamespacedName)
	if err != nil || root == nil || report.Attached(root) == nil {
		return reconcile.Result{}, err
	}
	o := observedAttachment{shown: report.Attached(root)}
	pv, err := index.VolumeOf(ctx, r.Client, root)
	if err != nil {
		return reconcile.Result{}, err
	}
	if pv != nil {
		o.cluster, _, _, _ = hostpv.LeafOfHostVolume(pv)
	}
	if o.cluster != "" {
		if err := r.observeMember(ctx, &o); err != nil {
			return reconcile.Result{}, err
		}
	}
	should := decideAttachment(o)
	if should == nil {
		return reconcile.Result{}, nil
	}
	body := should.ApplyBody(root, r.Clock.Now())
	if body == nil {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(r.root.ApplyStatus(ctx, attachmentActor, root, body))
}

// observeMember adds the member's registration, and whether it is away.
func (r *AttachmentReconciler) observeMember(ctx context.Context, o *observedAttachment) error {
	registrations, err := index.RegistrationsOfCluster(ctx, r.Client, o.cluster)
	if err != nil {
		return err
	}
	for i := range registrations {
		o.registered = true
		name := registrations[i].Name
		if state, _ := r.Fleet.MemberState(name); state.Connected {
			o.linked = true
			return nil
		}
		list, err := index.NodesOfMember(ctx, r.Client, &registrations[i])
		if err != nil {
			return err
		}
		if at := slices.IndexFunc(list, func(node corev1.Node) bool { return nodes.MemberAway(&node) }); at >= 0 {
			o.name, o.away = name, nodes.FindCondition(&list[at], v1alpha1.NodeMemberAway)
		}
	}
	return nil
}

// ofClaim enqueues a claim that has the condition Attached.
func (r *AttachmentReconciler) ofClaim(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.withCondition(ctx, member.RequestOfSameKey(ctx, obj))
}

// volumeToRequests enqueues the claim of a host PV.
func (r *AttachmentReconciler) volumeToRequests(ctx context.Context, obj client.Object) []reconcile.Request {
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok || pv.Spec.ClaimRef == nil {
		return nil
	}
	return r.withCondition(ctx, []reconcile.Request{{NamespacedName: hostpv.ClaimRefKey(pv)}})
}

// nodeToRequests enqueues the claims whose volumes are in a Node's member, if the member is away.
func (r *AttachmentReconciler) nodeToRequests(ctx context.Context, obj client.Object) []reconcile.Request {
	node, ok := obj.(*corev1.Node)
	if !ok || !nodes.IsVirtual(node) || !nodes.MemberAway(node) {
		return nil
	}
	return r.ofCluster(ctx, node.Labels[v1alpha1.LabelClusterID])
}

// registrationToRequests enqueues the claims whose volumes are in a registered cluster when the
// registration is deleted or its connection changes.
func (r *AttachmentReconciler) registrationToRequests(ctx context.Context, obj client.Object) []reconcile.Request {
	registration, ok := obj.(*v1alpha1.ClusterRegistration)
	if !ok || registration.Status.ClusterID == "" {
		return nil
	}
	return r.ofCluster(ctx, registration.Status.ClusterID)
}

func (r *AttachmentReconciler) ofCluster(ctx context.Context, clusterID string) []reconcile.Request {
	found, err := index.HostVolumesIn(ctx, r.Client, clusterID)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the volumes in a member")
	}
	var requests []reconcile.Request
	for i := range found {
		if found[i].Spec.ClaimRef != nil {
			requests = append(requests, reconcile.Request{NamespacedName: hostpv.ClaimRefKey(&found[i])})
		}
	}
	return r.withCondition(ctx, requests)
}

// withCondition returns the requests for claims that have the condition.
func (r *AttachmentReconciler) withCondition(ctx context.Context, requests []reconcile.Request) []reconcile.Request {
	return slices.DeleteFunc(requests, func(request reconcile.Request) bool {
		claim, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, r.Client, request.NamespacedName)
		return err == nil && (claim == nil || report.Attached(claim) == nil)
	})
}
