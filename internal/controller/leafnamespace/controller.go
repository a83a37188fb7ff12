package leafnamespace

import (
	"context"
	"fmt"
	"sync"
	"time"

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
	"github.com/xylem-io/xylem/internal/proof/namespaces"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/route/urgency"
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

	mu sync.Mutex
	// idle records since when each namespace has been neither needed nor occupied. It is lost when the
	// link restarts, which only prolongs the wait.
	idle map[string]time.Time
}

// +kubebuilder:rbac:groups="",resources=namespaces;pods;persistentvolumeclaims,verbs=get;list;watch

// Setup adds the controller to a member's link.
func Setup(link *member.Link) error {
	needsForPod := route.Of(func(pod *corev1.Pod) bool { return needsPod(pod, link.Member) })
	needsForClaim := route.Of(func(claim *corev1.PersistentVolumeClaim) bool { return needsClaim(claim, link.Member) })
	r := newReconciler(link)
	return link.Controller(Name, workers, r,
		urgency.Unhurried(r.absent, link.RootSource(&corev1.Pod{}, ofObject, needsForPod)),
		urgency.Unhurried(r.absent, link.RootSource(&corev1.PersistentVolumeClaim{}, ofObject, needsForClaim)),
		link.RootSource(&corev1.Namespace{}, ofNamespace),
		link.LeafSource(&corev1.Namespace{}, ofNamespace),
		urgency.Unhurried(urgency.Never, link.LeafSource(&corev1.Pod{}, ofObject, createdOrDeleted)),
		urgency.Unhurried(urgency.Never, link.LeafSource(&corev1.PersistentVolumeClaim{}, ofObject, createdOrDeleted)),
		urgency.Unhurried(urgency.Never, link.LeafSource(&corev1.ConfigMap{}, ofObject, createdOrDeleted)),
		urgency.Unhurried(urgency.Never, link.LeafSource(&corev1.Secret{}, ofObject, createdOrDeleted)),
	)
}

// absent marks an object's event as urgent if the member lacks its namespace.
func (r *reconciler) absent(ctx context.Context, before, after client.Object) bool {
	obj := after
	if obj == nil {
		obj = before
	}
	leaf, err := index.Find[corev1.Namespace](ctx, r.Cache, index.Named(obj.GetNamespace()))
	return err != nil || leaf == nil
}

// createdOrDeleted ignores updates of a leaf, because they do not change whether its namespace is
// occupied.
var createdOrDeleted = predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}

func newReconciler(link *member.Link) *reconciler {
	return &reconciler{Link: link, idle: map[string]time.Time{}}
}

// Reconcile takes the next step for one namespace.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.observe(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	d := decide(o)
	switch _, creates := d.(create); {
	case creates:
	case o.root == nil && o.leaf == nil:
		r.Rejections.Forget(request.Name)
	default:
		r.Rejections.Set(request.Name, nil) // the namespace exists, or is not needed
	}
	return r.act(ctx, o, d)
}

func (r *reconciler) observe(ctx context.Context, name string) (observed, error) {
	o := observed{member: r.Member, rules: r.Rules, suspended: r.MayDestroy() != nil}
	var err error
	if o.root, err = index.Find[corev1.Namespace](ctx, r.Host, index.Named(name)); err != nil {
		return o, fmt.Errorf("read the namespace in the host: %w", err)
	}
	if o.leaf, err = index.Find[corev1.Namespace](ctx, r.Cache, index.Named(name)); err != nil {
		return o, fmt.Errorf("read the namespace in the member: %w", err)
	}
	if o.leaf != nil {
		if o.occupied, err = r.occupied(ctx, name); err != nil {
			return o, err
		}
	}
	if !o.occupied {
		if o.needed, err = r.needed(ctx, name); err != nil {
			return o, err
		}
	}
	o.idle = r.idleFor(name, o.leaf != nil && !o.occupied && !o.needed)
	if o.root != nil && mirror.MadeByUs(o.leaf, r.HostID) && len(o.unexpected()) > 0 {
		o.applied, err = r.applied(ctx, name)
	}
	return o, err
}

func (r *reconciler) act(ctx context.Context, o observed, d decision) (reconcile.Result, error) {
	switch d := d.(type) {
	case nothing:
		return reconcile.Result{}, nil
	case create:
		return reconcile.Result{}, r.create(ctx, d.leaf)
	case relabel:
		return reconcile.Result{}, r.Leaf.Patch(ctx, actor, o.leaf, d.leaf)
	case linger:
		return reconcile.Result{RequeueAfter: d.rest}, nil
	case remove:
		return r.remove(ctx, o.leaf)
	}
	return reconcile.Result{}, fmt.Errorf("unknown decision %T", d)
}

// create creates the namespace, and records a rejection. If the namespace already exists, its watch
// event enqueues the request.
func (r *reconciler) create(ctx context.Context, leaf *corev1.Namespace) error {
	err := r.Leaf.Create(ctx, actor, leaf)
	if err == nil || apierrors.IsAlreadyExists(err) {
		r.Rejections.Set(leaf.Name, nil)
		return nil
	}
	if refusal := report.NamespaceRefused(r.Member, leaf.Name, err); refusal != nil {
		r.Rejections.Set(leaf.Name, refusal)
		if reportErr := r.eventRefused(ctx, leaf.Name, refusal); reportErr != nil {
			return reportErr
		}
	}
	return err
}

// remove deletes the namespace if live reads prove that it is empty. It is not an error if the
// namespace is not empty, because a retry would not change that.
func (r *reconciler) remove(ctx context.Context, leaf *corev1.Namespace) (reconcile.Result, error) {
	e, held, err := namespaces.Prover{Discovery: r.Discovery, Metadata: r.Metadata, Clock: r.Clock}.Empty(ctx, leaf)
	if err != nil {
		return reconcile.Result{}, err
	}
	if held != "" {
		r.logKept(ctx, leaf.Name, held)
		return reconcile.Result{RequeueAfter: again}, nil
	}
	// The proof takes some time. If an object has needed the namespace in the meantime, its event has
	// enqueued the request again.
	if needed, err := r.needed(ctx, leaf.Name); err != nil || needed {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, client.IgnoreNotFound(r.Leaf.DeleteNamespace(ctx, leaf, e))
}

// idleFor returns how long a namespace has been idle.
func (r *reconciler) idleFor(name string, idle bool) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !idle {
		delete(r.idle, name)
		return 0
	}
	since, known := r.idle[name]
	if !known {
		since = r.Clock.Now()
		r.idle[name] = since
	}
	return r.Clock.Since(since)
}

// needed reports whether a Pod or claim in the host's namespace is, or will be, placed in the
// member.
func (r *reconciler) needed(ctx context.Context, name string) (bool, error) {
	pods, err := r.needingPods(ctx, name)
	if err != nil || len(pods) > 0 {
		return len(pods) > 0, err
	}
	var claims corev1.PersistentVolumeClaimList
	if err := r.Host.List(ctx, &claims, client.InNamespace(name), index.ReadOnly); err != nil {
		return false, fmt.Errorf("list the claims in namespace %s of the host: %w", name, err)
	}
	for i := range claims.Items {
		if needsClaim(&claims.Items[i], r.Member) {
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
		if needsPod(&list.Items[i], r.Member) {
			pods = append(pods, &list.Items[i])
		}
	}
	return pods, nil
}

// occupied reports whether the namespace in the member contains leaves.
func (r *reconciler) occupied(ctx context.Context, name string) (bool, error) {
	for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.PersistentVolumeClaimList{}, &corev1.ConfigMapList{}, &corev1.SecretList{}} {
		if err := r.Cache.List(ctx, list, client.InNamespace(name), client.Limit(1), index.ReadOnly); err != nil {
			return false, fmt.Errorf("list the leaves in namespace %s of the member: %w", name, err)
		}
		if meta.LenList(list) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// ofObject enqueues the namespace that an object is in.
func ofObject(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: obj.GetNamespace()}}}
}

// ofNamespace enqueues the namespace.
func ofNamespace(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: obj.GetName()}}}
}
