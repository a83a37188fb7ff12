package rootconfig

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/route"
)

const (
	// NameConfigMap is the name of the controller of ConfigMaps.
	NameConfigMap = "root_configmap"
	// NameSecret is the name of the controller of Secrets.
	NameSecret = "root_secret"

	actor = guarded.Actor("root-config")

	// interval between readings of a root that is in use, jittered. A kubelet
	// takes that long as well to notice a change (its sync period, and the time
	// that its cache lives), and Secrets may not be watched.
	interval = time.Minute
	// missing is the interval while a root that Pods cannot start without is
	// not there: somebody waits.
	missing = 10 * time.Second
	// jitter, as a fraction, keeps readings from falling together.
	jitter = 0.2

	// workers: a request is one live read and one write at most.
	workers = 4
)

// reconciler reconciles the copies of the ConfigMaps or the Secrets that Pods on one
// member refer to, by the roots' names.
type reconciler[T client.Object] struct {
	*member.Link
	kind kind[T]

	mu       sync.Mutex
	readings map[types.NamespacedName]reading
}

// +kubebuilder:rbac:groups="",resources=configmaps;secrets,verbs=get
// +kubebuilder:rbac:groups="",resources=pods;persistentvolumeclaims;namespaces,verbs=get;list;watch

// Setup adds both controllers to a member's link.
func Setup(link *member.Link) error {
	if err := setup(link, configMaps()); err != nil {
		return err
	}
	return setup(link, secrets())
}

func setup[T client.Object](link *member.Link, k kind[T]) error {
	r := newReconciler(link, k)
	return link.Controller(k.controller, workers, r,
		link.RootSource(&corev1.Pod{}, r.ofRootPod, route.PodChanged),
		link.RootSource(&corev1.PersistentVolumeClaim{}, r.ofClaim),
		link.RootSource(&corev1.Namespace{}, r.inNamespace),
		r.leafPods(),
		link.LeafSource(k.empty(), r.ofCopy),
		link.LeafSource(&corev1.Namespace{}, r.inNamespace),
	)
}

func newReconciler[T client.Object](link *member.Link, k kind[T]) *reconciler[T] {
	return &reconciler[T]{Link: link, kind: k, readings: map[types.NamespacedName]reading{}}
}

// Reconcile brings one copy a step further.
func (r *reconciler[T]) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.observe(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := r.act(ctx, o, decide(o)); err != nil {
		r.forget(o.key) // what was read has come to nothing
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: r.remember(o)}, nil
}

func (r *reconciler[T]) observe(ctx context.Context, key types.NamespacedName) (observed, error) {
	o := observed{member: r.Member, rules: r.Rules, kind: r.kind.reference, key: key, suspended: r.MayDestroy() != nil}
	var err error
	if o.users, err = r.users(ctx, key); err != nil {
		return o, err
	}
	root, err := index.Find[corev1.Namespace](ctx, r.Host, index.Named(key.Namespace))
	if err != nil {
		return o, err
	}
	o.copies = mirror.Copies{HostID: r.HostID}
	if root != nil {
		o.copies.Namespace = root.UID
	}
	leaf, err := r.copiesOf(ctx, &o)
	if err != nil {
		return o, err
	}
	if len(o.users) == 0 || root == nil {
		return o, nil
	}
	if o.namespace, err = index.Find[corev1.Namespace](ctx, r.Cache, index.Named(key.Namespace)); err != nil {
		return o, err
	}
	if !o.pushable() || o.leaf != nil && !r.reading(key).due(r.Clock.Now(), o.users) {
		return o, nil
	}
	return o, r.readRoot(ctx, &o, leaf)
}

// copiesOf observes the member's copies of a root, and returns the one that new Pods
// refer to.
func (r *reconciler[T]) copiesOf(ctx context.Context, o *observed) (T, error) {
	key := types.NamespacedName{Namespace: o.key.Namespace, Name: o.copies.Name(o.key.Name)}
	leaf, found, err := r.get(ctx, r.Cache, key)
	if err != nil {
		return leaf, err
	}
	if found {
		if o.foreign = !ours(leaf, r.HostID, o.key); !o.foreign {
			o.leaf = leaf
		}
	}
	if o.leaf != nil && len(o.users) == 0 {
		if o.held, err = r.held(ctx, key); err != nil {
			return leaf, err
		}
	}
	return leaf, r.formerOf(ctx, o)
}

// formerOf observes the copies of a root that no new Pod refers to.
func (r *reconciler[T]) formerOf(ctx context.Context, o *observed) error {
	all, err := r.kind.list(ctx, r.Cache, o.key.Namespace)
	if err != nil {
		return fmt.Errorf("list the copies in namespace %s: %w", o.key.Namespace, err)
	}
	for _, c := range all {
		if c.GetName() == o.copies.Name(o.key.Name) || !ours(c, r.HostID, o.key) {
			continue
		}
		held, err := r.held(ctx, client.ObjectKeyFromObject(c))
		if err != nil {
			return err
		}
		o.former = append(o.former, former{leaf: c, held: held})
	}
	return nil
}

// readRoot reads the root, live, and compares the leaf with it.
func (r *reconciler[T]) readRoot(ctx context.Context, o *observed, leaf T) error {
	root, found, err := r.get(ctx, r.HostLive, o.key)
	if err != nil {
		return err
	}
	o.read = true
	if !found || root.GetDeletionTimestamp() != nil && o.leaf == nil {
		return nil
	}
	want, err := r.kind.translate(root, o.copies)
	if err != nil {
		if !errors.As(err, &o.refusal) {
			return fmt.Errorf("translate %s %s: %w", r.kind.reference, o.key, err)
		}
		return nil
	}
	o.want = want
	if o.leaf != nil {
		o.drift = r.kind.drift(want, leaf)
	}
	for i, f := range o.former {
		if c, ok := f.leaf.(T); ok && c.GetName() == o.key.Name {
			o.former[i].drift = r.kind.drift(want, c)
		}
	}
	return nil
}

func (r *reconciler[T]) get(ctx context.Context, from client.Reader, key types.NamespacedName) (T, bool, error) {
	obj := r.kind.empty()
	found, err := index.Get(ctx, from, key, obj)
	return obj, found, err
}

// users are the Pods of the host that need the copy. They are the cache's own,
// not to be changed.
func (r *reconciler[T]) users(ctx context.Context, key types.NamespacedName) ([]*corev1.Pod, error) {
	pods, err := index.PodsOfReference(ctx, r.Host, r.kind.reference, key)
	if err != nil {
		return nil, err
	}
	var users []*corev1.Pod
	for i := range pods {
		uses, err := r.uses(ctx, &pods[i])
		if err != nil {
			return nil, err
		}
		if uses {
			users = append(users, &pods[i])
		}
	}
	return users, nil
}

func (r *reconciler[T]) uses(ctx context.Context, pod *corev1.Pod) (bool, error) {
	switch useOf(pod, r.Member) {
	case used:
		return true, nil
	case usedEarly:
		for _, name := range podspec.ClaimNames(pod) {
			claim, err := index.Find[corev1.PersistentVolumeClaim](ctx, r.Host, types.NamespacedName{Namespace: pod.Namespace, Name: name})
			if err != nil {
				return false, err
			}
			if claim != nil && bringsEarly(claim, r.Member) {
				return true, nil
			}
		}
	case unused:
	}
	return false, nil
}

// held looks for leaf Pods that refer to the copy, ended ones included: the next
// run of a CronJob finds it while they are kept.
func (r *reconciler[T]) held(ctx context.Context, key types.NamespacedName) (bool, error) {
	var pods corev1.PodList
	if err := r.Cache.List(ctx, &pods, client.InNamespace(key.Namespace), index.ReadOnly); err != nil {
		return false, fmt.Errorf("list the leaf Pods of namespace %s: %w", key.Namespace, err)
	}
	for i := range pods.Items {
		if refers(&pods.Items[i], r.kind.reference, key.Name) {
			return true, nil
		}
	}
	return false, nil
}

func (r *reconciler[T]) act(ctx context.Context, o observed, d decision) error {
	switch d := d.(type) {
	case nothing:
		return nil
	case tell:
		r.eventRefused(o.users, d.refusal)
		return nil
	case create:
		return r.create(ctx, o, d.leaf)
	case update:
		return r.refusedByMember(o, "update", r.update(ctx, o, d.leaf))
	case remove:
		return client.IgnoreNotFound(r.Leaf.Delete(ctx, d.leaf))
	}
	return fmt.Errorf("unknown decision %T", d)
}

// create makes the copy. What is there already and was not seen in the cache is
// either ours, just made, or somebody else's.
func (r *reconciler[T]) create(ctx context.Context, o observed, leaf client.Object) error {
	if err := r.sameNamespace(ctx, o); err != nil {
		return err
	}
	err := r.Leaf.Create(ctx, actor, leaf)
	if !apierrors.IsAlreadyExists(err) {
		return r.refusedByMember(o, "create", err)
	}
	there, found, err := r.get(ctx, r.Live, client.ObjectKeyFromObject(leaf))
	if err != nil {
		return fmt.Errorf("in the member: %w", err)
	}
	if found && !ours(there, r.HostID, o.key) {
		r.eventRefused(o.users, o.conflict())
	}
	return nil // ours: its event enqueues us; a stranger's is looked for again at the interval
}

// sameNamespace proves by a live read that what was read of the host belongs to the
// namespace that the copy is named after: to a cache that lags behind, the namespace of
// that name may be an earlier tenant's, whose Pods may still read the copy.
func (r *reconciler[T]) sameNamespace(ctx context.Context, o observed) error {
	root, err := index.Find[corev1.Namespace](ctx, r.HostLive, index.Named(o.key.Namespace))
	if err != nil {
		return err
	}
	if root == nil || root.UID != o.copies.Namespace {
		return fmt.Errorf("namespace %s of the host was replaced, and the cache shows the earlier one", o.key.Namespace)
	}
	return nil
}

func (r *reconciler[T]) update(ctx context.Context, o observed, leaf client.Object) error {
	if err := r.sameNamespace(ctx, o); err != nil {
		return err
	}
	after, ok := leaf.DeepCopyObject().(T)
	if !ok {
		return fmt.Errorf("%T is no %s", leaf, r.kind.reference)
	}
	want, ok := o.want.(T)
	if !ok {
		return fmt.Errorf("%T is no %s", o.want, r.kind.reference)
	}
	r.kind.fill(after, want)
	restamp(after, want)
	return r.Leaf.Patch(ctx, actor, leaf, after)
}

// refusedByMember reports to the users what the member's API server holds against
// the copy (a quota, an admission policy), and has it tried again at a bounded
// rate.
func (r *reconciler[T]) refusedByMember(o observed, doing string, err error) error {
	if refusal := guarded.RefusedByMember(r.Registration, doing, r.kind.reference+" "+o.key.Name, err); refusal != nil {
		r.eventRefused(o.users, refusal)
	}
	return err
}

func (r *reconciler[T]) reading(key types.NamespacedName) reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.readings[key]
}

func (r *reconciler[T]) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.readings, key)
}

// remember keeps what was read and for whom, and says when to read again; 0 if
// that is for an event to say.
func (r *reconciler[T]) remember(o observed) time.Duration {
	if len(o.users) == 0 || !o.pushable() {
		r.forget(o.key)
		return 0
	}
	now := r.Clock.Now()
	if !o.read {
		return max(r.reading(o.key).next.Sub(now), time.Second)
	}
	pause := interval
	users := sets.New[types.UID]()
	for _, pod := range o.users {
		users.Insert(pod.UID)
		if o.want == nil && needed(pod, r.kind.reference, o.key.Name) {
			pause = missing
		}
	}
	pause = wait.Jitter(pause, jitter)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readings[o.key] = reading{next: now.Add(pause), users: users}
	return pause
}
