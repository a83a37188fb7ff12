package leafnamespace

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/news"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/route"
)

const (
	// Name is the name of the controller.
	Name  = "leaf_namespace"
	actor = guarded.Actor("leaf-namespace")
	// workers is the number of concurrent reconciles. Most reconciles only read caches. One that
	// proves a namespace empty takes some seconds and must not delay the others.
	workers = 3
)

// reconciler reconciles the namespaces of one member. A namespace has the same name in the host and
// in the member.
type reconciler struct {
	*member.Link

	// idle measures how long each namespace has been neither needed nor occupied. It is lost when the
	// link restarts, which only prolongs the wait.
	idle *news.Durations[string]
}

// +kubebuilder:rbac:groups="",resources=namespaces;pods;persistentvolumeclaims,verbs=get;list;watch

// SetupWithLink adds the controller to a member's link.
func SetupWithLink(link *member.Link) error {
	needsForPod := route.PartChanged(func(pod *corev1.Pod) bool { return podNeedsNamespace(pod, link.Member) })
	needsForClaim := route.PartChanged(func(claim *corev1.PersistentVolumeClaim) bool { return claimNeedsNamespace(claim, link.Member) })
	r := newReconciler(link)
	return link.AddController(Name, workers, r,
		route.DelayUnlessUrgent(r.isNamespaceAbsent, link.RootObjectSource(&corev1.Pod{}, objectNamespaceToRequests, needsForPod)),
		route.DelayUnlessUrgent(r.isNamespaceAbsent, link.RootObjectSource(&corev1.PersistentVolumeClaim{}, objectNamespaceToRequests, needsForClaim)),
		link.RootObjectSource(&corev1.Namespace{}, namespaceToRequests),
		link.LeafObjectSource(&corev1.Namespace{}, namespaceToRequests),
		route.DelayUnlessUrgent(route.NeverUrgent, link.LeafObjectSource(&corev1.Pod{}, objectNamespaceToRequests, existenceChanged)),
		route.DelayUnlessUrgent(route.NeverUrgent, link.LeafObjectSource(&corev1.PersistentVolumeClaim{}, objectNamespaceToRequests, existenceChanged)),
		route.DelayUnlessUrgent(route.NeverUrgent, link.LeafObjectSource(&corev1.ConfigMap{}, objectNamespaceToRequests, existenceChanged)),
		route.DelayUnlessUrgent(route.NeverUrgent, link.LeafObjectSource(&corev1.Secret{}, objectNamespaceToRequests, existenceChanged)),
		route.DelayUnlessUrgent(route.NeverUrgent, link.LeafServiceSource(&corev1.Service{}, objectNamespaceToRequests, existenceChanged)),
	)
}

// isNamespaceAbsent marks an object's event as urgent if the member lacks its namespace.
func (r *reconciler) isNamespaceAbsent(ctx context.Context, before, after client.Object) bool {
	obj := after
	if obj == nil {
		obj = before
	}
	leaf, err := index.FindObject[corev1.Namespace](ctx, r.Cache, index.ClusterScopedKey(obj.GetNamespace()))
	return err != nil || leaf == nil
}

// existenceChanged ignores updates of a leaf, because they do not change whether its namespace is
// occupied.
var existenceChanged = predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}

func newReconciler(link *member.Link) *reconciler {
	return &reconciler{Link: link, idle: news.NewDurations[string](link.Clock)}
}

// Reconcile takes the next step for one namespace.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.observeNamespace(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	d := decideNamespace(o)
	switch _, creates := d.(createLeaf); {
	case creates:
	case o.root == nil && o.leaf == nil:
		r.NamespaceRejections.ForgetNamespace(request.Name)
	default:
		r.NamespaceRejections.SetRejection(request.Name, nil) // the namespace exists, or is not needed
	}
	return r.actOnNamespace(ctx, o, d)
}

func (r *reconciler) observeNamespace(ctx context.Context, name string) (observed, error) {
	o := observed{member: r.Member, rules: r.Rules, suspended: r.CheckNotSuspended() != nil}
	var err error
	if o.root, err = index.FindObject[corev1.Namespace](ctx, r.Host, index.ClusterScopedKey(name)); err != nil {
		return o, fmt.Errorf("read the namespace in the host: %w", err)
	}
	if o.leaf, err = index.FindObject[corev1.Namespace](ctx, r.Cache, index.ClusterScopedKey(name)); err != nil {
		return o, fmt.Errorf("read the namespace in the member: %w", err)
	}
	if o.leaf != nil {
		if o.occupied, err = r.isNamespaceOccupied(ctx, name); err != nil {
			return o, err
		}
	}
	if !o.occupied {
		if o.needed, err = r.isNamespaceNeeded(ctx, name); err != nil {
			return o, err
		}
	}
	o.idle = r.idle.Measure(name, o.leaf != nil && !o.occupied && !o.needed)
	if o.root != nil && mirror.IsNamespaceCreatedByXylem(o.leaf, r.HostID) && len(o.unexpectedLabels()) > 0 {
		o.applied, err = r.readAppliedLabels(ctx, name)
	}
	return o, err
}

func (r *reconciler) actOnNamespace(ctx context.Context, o observed, d decision) (reconcile.Result, error) {
	switch d := d.(type) {
	case nothing:
		return reconcile.Result{}, nil
	case createLeaf:
		return reconcile.Result{}, r.createNamespace(ctx, d.leaf)
	case relabelLeaf:
		return reconcile.Result{}, r.MemberWriter.PatchStamped(ctx, actor, o.leaf, d.leaf)
	case waitForIdle:
		return reconcile.Result{RequeueAfter: d.rest}, nil
	case removeLeaf:
		return r.removeIfEmpty(ctx, o.leaf)
	}
	return reconcile.Result{}, fmt.Errorf("unknown decision %T", d)
}

// createNamespace creates the namespace, and records a rejection. If the namespace already exists, its watch
// event enqueues the request.
func (r *reconciler) createNamespace(ctx context.Context, leaf *corev1.Namespace) error {
	err := r.MemberWriter.CreateStamped(ctx, actor, leaf)
	if err == nil || apierrors.IsAlreadyExists(err) {
		r.NamespaceRejections.SetRejection(leaf.Name, nil)
		return nil
	}
	if refusal := report.NamespaceRefusal(r.Member, leaf.Name, err); refusal != nil {
		r.NamespaceRejections.SetRejection(leaf.Name, refusal)
		if reportErr := r.emitNamespaceRefused(ctx, leaf.Name, refusal); reportErr != nil {
			return reportErr
		}
	}
	return err
}

// removeIfEmpty deletes the namespace if live reads prove that it is empty. It is not an error if the
// namespace is not empty, because a retry would not change that.
func (r *reconciler) removeIfEmpty(ctx context.Context, leaf *corev1.Namespace) (reconcile.Result, error) {
	e, held, err := proof.NamespaceProver{Discovery: r.Discovery, Metadata: r.Metadata, Clock: r.Clock}.ProveNamespaceEmpty(ctx, leaf)
	if err != nil {
		return reconcile.Result{}, err
	}
	if held != "" {
		r.logKeptNamespace(ctx, leaf.Name, held)
		return reconcile.Result{RequeueAfter: emptyCheckInterval}, nil
	}
	// The proof takes some time. If an object has needed the namespace in the meantime, its event has
	// enqueued the request again.
	if needed, err := r.isNamespaceNeeded(ctx, leaf.Name); err != nil || needed {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, client.IgnoreNotFound(r.MemberWriter.DeleteNamespace(ctx, leaf, e))
}

// isNamespaceNeeded reports whether a Pod or claim in the host's namespace is, or will be, placed in the
// member.
func (r *reconciler) isNamespaceNeeded(ctx context.Context, name string) (bool, error) {
	pods, err := r.needingPods(ctx, name)
	if err != nil || len(pods) > 0 {
		return len(pods) > 0, err
	}
	var claims corev1.PersistentVolumeClaimList
	if err := r.Host.List(ctx, &claims, client.InNamespace(name), index.ReadOnly); err != nil {
		return false, fmt.Errorf("list the claims in namespace %s of the host: %w", name, err)
	}
	for i := range claims.Items {
		if claimNeedsNamespace(&claims.Items[i], r.Member) {
			return true, nil
		}
	}
	return false, nil
}

// needingPods returns the Pods that need the namespace. The Pods belong to the cache and must not
// be changed.
func (r *reconciler) needingPods(ctx context.Context, name string) ([]*corev1.Pod, error) {
	var list corev1.PodList
	if err := r.Host.List(ctx, &list, client.InNamespace(name), index.ReadOnly); err != nil {
		return nil, fmt.Errorf("list the Pods in namespace %s of the host: %w", name, err)
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		pod := &list.Items[i]
		if !podNeedsNamespace(pod, r.Member) {
			continue
		}
		if pod.Spec.NodeName != "" {
			if here, err := r.HasPod(ctx, pod); err != nil || !here {
				if err != nil {
					return nil, err
				}
				continue
			}
		}
		pods = append(pods, pod)
	}
	return pods, nil
}

// isNamespaceOccupied reports whether the namespace in the member contains leaves.
func (r *reconciler) isNamespaceOccupied(ctx context.Context, name string) (bool, error) {
	for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.PersistentVolumeClaimList{}, &corev1.ConfigMapList{}, &corev1.SecretList{}, &corev1.ServiceList{}} {
		var from client.Reader = r.Cache
		if _, service := list.(*corev1.ServiceList); service {
			if from = r.LeafServiceCache(); from == nil {
				continue // the proof finds Services that the cache lacks
			}
		}
		if err := from.List(ctx, list, client.InNamespace(name), client.Limit(1), index.ReadOnly); err != nil {
			return false, fmt.Errorf("list the leaves in namespace %s of the member: %w", name, err)
		}
		if meta.LenList(list) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// objectNamespaceToRequests enqueues the namespace that an object is in.
func objectNamespaceToRequests(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: obj.GetNamespace()}}}
}

// namespaceToRequests enqueues the namespace.
func namespaceToRequests(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: obj.GetName()}}}
}
