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
	"github.com/xylem-io/xylem/internal/mirror/refs"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
)

const (
	// Name is the name of the controller.
	Name  = "root_config"
	actor = guarded.Actor("root-config")

	// readInterval is the time between two reads of a root in use, before jitter. A kubelet takes about as
	// long to observe a change (its sync period plus the lifetime of its cache). A watch is not
	// possible, because Xylem is not allowed to watch Secrets.
	readInterval = time.Minute
	// missingReadInterval is the interval while the host lacks a root that Pods need in order to start.
	missingReadInterval = 10 * time.Second
	// readJitter is a fraction of the interval that spreads the reads.
	readJitter = 0.2

	// workers is the number of concurrent reconciles. Each makes at most three live reads and one write for
	// a ConfigMap, and as many for the Secret with the same name.
	workers = 8
)

// Options configures the controller.
type Options struct {
	// RenewAfter is the share of a token's lifetime after which it is renewed.
	RenewAfter float64
}

// reconciler reconciles the copies of the ConfigMap and the Secret that have the same name in the host, or a Pod's tokens.
// Its requests contain that name, or mirror.TokenSecretName.
type reconciler struct {
	*member.Link
	configMaps      *copier[*corev1.ConfigMap]
	secrets, tokens *copier[*corev1.Secret]
}

// copier reconciles the copies of ConfigMaps or Secrets in one member.
type copier[T client.Object] struct {
	*member.Link
	kind  configKind[T]
	roots rootReader[T]
	// podTokens is nil, except in the copier for tokens.
	podTokens *podTokens

	mu       sync.Mutex
	readings map[types.NamespacedName]reading
}

// +kubebuilder:rbac:groups="",resources=configmaps;secrets,verbs=get
// +kubebuilder:rbac:groups="",resources=pods;persistentvolumeclaims;namespaces,verbs=get;list;watch

// Setup adds the controller to a member's link.
func Setup(link *member.Link, options Options) error {
	r := newReconciler(link, options)
	return link.AddController(Name, workers, r,
		link.RootObjectSource(&corev1.Pod{}, r.rootPodToReferences, route.PodChanged),
		link.RootObjectSource(&corev1.PersistentVolumeClaim{}, r.claimToReferences),
		link.RootObjectSource(&corev1.Namespace{}, r.namespaceToReferences),
		r.leafPodSource(),
		link.LeafObjectSource(&corev1.ConfigMap{}, r.copyToRoot),
		link.LeafObjectSource(&corev1.Secret{}, r.copyToRoot),
		link.LeafObjectSource(&corev1.Namespace{}, r.namespaceToReferences),
	)
}

func newReconciler(link *member.Link, options Options) *reconciler {
	configMaps, secrets := configMapKind(), secretKind()
	issuer := &podTokens{Link: link, Options: options}
	tokens := newCopier(link, tokenKind(), rootReader[*corev1.Secret](issuer))
	tokens.podTokens = issuer
	return &reconciler{
		link,
		newCopier(link, configMaps, hostRoots[*corev1.ConfigMap]{Link: link, kind: configMaps}),
		newCopier(link, secrets, hostRoots[*corev1.Secret]{Link: link, kind: secrets}),
		tokens,
	}
}

func newCopier[T client.Object](link *member.Link, k configKind[T], roots rootReader[T]) *copier[T] {
	return &copier[T]{Link: link, kind: k, roots: roots, readings: map[types.NamespacedName]reading{}}
}

// Reconcile takes the next step for the copies of both objects. A failure of one does not delay the other.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	secrets := r.secrets
	if _, is := mirror.PodOfTokenSecret(request.Name); is { // Secrets of such names are not copied, but ConfigMaps are
		secrets = r.tokens
	}
	nextConfigMap, err := r.configMaps.proceed(ctx, request.NamespacedName)
	nextSecret, secretErr := secrets.proceed(ctx, request.NamespacedName)
	return reconcile.Result{RequeueAfter: route.SoonerDelay(nextConfigMap, nextSecret)}, errors.Join(err, secretErr)
}

// proceed takes the next step for one copy, and returns the time until the root's next read, or 0.
func (r *copier[T]) proceed(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	o, err := r.observe(ctx, key)
	if err != nil {
		return 0, err
	}
	if err := r.actAndReport(ctx, o, decideCopyAction(o)); err != nil {
		r.forget(o.key) // repeat the read, because it had no effect
		return 0, err
	}
	return r.remember(o), nil
}

func (r *copier[T]) observe(ctx context.Context, key types.NamespacedName) (observed, error) {
	o := observed{member: r.Member, rules: r.Rules, kind: r.kind.reference, key: key, deletionSuspended: r.CheckNotSuspended() != nil}
	var err error
	if o.users, err = r.findUsers(ctx, key); err != nil {
		return o, err
	}
	root, err := index.FindObject[corev1.Namespace](ctx, r.Host, index.ClusterScopedKey(key.Namespace))
	if err != nil {
		return o, err
	}
	o.hostNamespace = placement.NamespaceOf(key.Namespace, root)
	o.copies = mirror.ConfigCopies{HostID: r.HostID}
	if root != nil {
		o.copies.NamespaceUID = root.UID
	}
	leaf, err := r.copiesOf(ctx, &o)
	if err != nil {
		return o, err
	}
	if len(o.users) == 0 || root == nil {
		return o, nil
	}
	if o.memberNamespace, err = index.FindObject[corev1.Namespace](ctx, r.Cache, index.ClusterScopedKey(key.Namespace)); err != nil {
		return o, err
	}
	if !o.copiesAllowed() || o.leaf != nil && !r.reading(key).readDue(r.Clock.Now(), o.users) {
		return o, nil
	}
	return o, r.readRoot(ctx, &o, leaf)
}

// copiesOf observes the root's copies in the member. It returns the current copy, which new Pods
// refer to.
func (r *copier[T]) copiesOf(ctx context.Context, o *observed) (T, error) {
	key := types.NamespacedName{Namespace: o.key.Namespace, Name: r.kind.nameOfCopy(o.copies, o.key.Name)}
	leaf, found, err := r.get(ctx, r.Cache, key)
	if err != nil {
		return leaf, err
	}
	if found {
		if o.nameTaken = !isCopyOfRoot(leaf, r.HostID, o.key); !o.nameTaken {
			o.leaf = leaf
		}
	}
	if o.leaf != nil && len(o.users) == 0 {
		if o.referredByLeafPod, err = r.held(ctx, key); err != nil {
			return leaf, err
		}
	}
	return leaf, r.formerOf(ctx, o)
}

// formerOf observes the root's former copies, which new Pods do not refer to.
func (r *copier[T]) formerOf(ctx context.Context, o *observed) error {
	if r.podTokens != nil {
		return nil
	}
	all, err := r.kind.list(ctx, r.Cache, o.key.Namespace)
	if err != nil {
		return fmt.Errorf("list the copies in namespace %s: %w", o.key.Namespace, err)
	}
	for _, c := range all {
		if c.GetName() == r.kind.nameOfCopy(o.copies, o.key.Name) || !isCopyOfRoot(c, r.HostID, o.key) {
			continue
		}
		held, err := r.held(ctx, client.ObjectKeyFromObject(c))
		if err != nil {
			return err
		}
		o.former = append(o.former, formerCopy{leaf: c, referredByLeafPod: held})
	}
	return nil
}

// readRoot reads the root live and compares the copies with it.
func (r *copier[T]) readRoot(ctx context.Context, o *observed, leaf T) error {
	root, found, pause, err := r.roots.readRoot(ctx, o)
	if err != nil {
		return err
	}
	o.rootRead, o.pause = true, pause
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

func (r *copier[T]) get(ctx context.Context, from client.Reader, key types.NamespacedName) (T, bool, error) {
	obj := r.kind.empty()
	found, err := index.GetIfExists(ctx, from, key, obj)
	return obj, found, err
}

// findUsers returns the host's Pods that need the copy, or the Pod that needs the tokens. The Pods belong to the cache and
// must not be changed.
func (r *copier[T]) findUsers(ctx context.Context, key types.NamespacedName) ([]*corev1.Pod, error) {
	if r.podTokens != nil {
		return r.podTokens.findUsers(ctx, key)
	}
	pods, err := index.PodsOfReference(ctx, r.Host, r.kind.reference, key)
	if err != nil {
		return nil, err
	}
	var users []*corev1.Pod
	for i := range pods {
		if readsAsNode(r.Link, r.kind.reference) && pods[i].Spec.NodeName == "" {
			continue
		}
		uses, err := usesCopies(ctx, r.Link, &pods[i])
		if err != nil {
			return nil, err
		}
		if uses {
			users = append(users, &pods[i])
		}
	}
	return users, nil
}

// usesCopies reports whether a host Pod needs the copies of the objects that it refers to.
func usesCopies(ctx context.Context, link *member.Link, pod *corev1.Pod) (bool, error) {
	switch podUseOf(pod, link.Member) {
	case copiesUsed:
		return link.HasPod(ctx, pod)
	case copiesUsedEarly:
		for _, name := range podspec.ClaimNamesOfPod(pod) {
			claim, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, link.Host, types.NamespacedName{Namespace: pod.Namespace, Name: name})
			if err != nil {
				return false, err
			}
			if claim != nil && allowsEarlyPush(claim, link.Member) {
				return true, nil
			}
		}
	case copiesUnused:
	}
	return false, nil
}

// held reports whether a leaf Pod refers to the copy. Finished Pods count, so the copy remains
// between the runs of a CronJob that keeps its finished Pods.
func (r *copier[T]) held(ctx context.Context, key types.NamespacedName) (bool, error) {
	if r.podTokens != nil {
		leaf, err := r.podTokens.findLeaf(ctx, key)
		return leaf != nil, err
	}
	var pods corev1.PodList
	if err := r.Cache.List(ctx, &pods, client.InNamespace(key.Namespace), index.ReadOnly); err != nil {
		return false, fmt.Errorf("list the leaf Pods in namespace %s: %w", key.Namespace, err)
	}
	for i := range pods.Items {
		if podRefersTo(&pods.Items[i], r.kind.reference, key.Name) {
			return true, nil
		}
	}
	return false, nil
}

// actAndReport performs the step, and then ends a problem of the Pod's tokens that is solved.
func (r *copier[T]) actAndReport(ctx context.Context, o observed, d decision) error {
	if err := r.act(ctx, o, d); err != nil || r.podTokens == nil || o.want == nil || o.nameTaken {
		return err
	}
	return r.podTokens.reportPresent(ctx, o.users[0])
}

func (r *copier[T]) act(ctx context.Context, o observed, d decision) error {
	switch d := d.(type) {
	case doNothing:
		return nil
	case reportRefusal:
		return r.reportRefused(ctx, o.users, d.refusal)
	case createCopy:
		return r.create(ctx, o, d.leaf)
	case updateCopy:
		return r.refusedByMember(ctx, o, "update", r.update(ctx, o, d.leaf))
	case deleteCopy:
		return client.IgnoreNotFound(r.MemberWriter.DeleteStamped(ctx, d.leaf))
	}
	return fmt.Errorf("unknown decision %T", d)
}

// create creates the copy. An existing object that is not in the cache is either a new copy
// or a foreign object.
func (r *copier[T]) create(ctx context.Context, o observed, leaf client.Object) error {
	if err := r.sameNamespace(ctx, o); err != nil {
		return err
	}
	err := r.MemberWriter.CreateStamped(ctx, actor, leaf)
	if !apierrors.IsAlreadyExists(err) {
		return r.refusedByMember(ctx, o, "create", err)
	}
	there, found, err := r.get(ctx, r.Live, client.ObjectKeyFromObject(leaf))
	if err != nil {
		return fmt.Errorf("read the existing copy in the member: %w", err)
	}
	if found && !isCopyOfRoot(there, r.HostID, o.key) {
		return r.reportRefused(ctx, o.users, o.nameTakenRefusal())
	}
	return nil // a new copy's event enqueues the request; a foreign object is checked again after the interval
}

// sameNamespace proves with a live read that the copy's name belongs to the current namespace. A
// stale cache may contain the namespace of an earlier tenant, whose Pods could still read the copy.
func (r *copier[T]) sameNamespace(ctx context.Context, o observed) error {
	root, err := index.FindObject[corev1.Namespace](ctx, r.HostLive, index.ClusterScopedKey(o.key.Namespace))
	if err != nil {
		return err
	}
	if root == nil || root.UID != o.copies.NamespaceUID {
		return fmt.Errorf("namespace %s was re-created in the host, and the cache still has the earlier one", o.key.Namespace)
	}
	return nil
}

// update patches a copy. It reads the copy live, because the cache has only a digest of the contents,
// and a patch computed from that would not remove keys.
func (r *copier[T]) update(ctx context.Context, o observed, leaf client.Object) error {
	if err := r.sameNamespace(ctx, o); err != nil {
		return err
	}
	want, ok := o.want.(T)
	if !ok {
		return fmt.Errorf("%T is not a %s", o.want, r.kind.reference)
	}
	before, found, err := r.get(ctx, r.Live, client.ObjectKeyFromObject(leaf))
	if err != nil {
		return fmt.Errorf("read the copy in the member: %w", err)
	}
	if !found || before.GetUID() != leaf.GetUID() || !isCopyOfRoot(before, r.HostID, o.key) || r.kind.drift(want, r.kind.reduce(before)) == refs.ConfigImmutable {
		return fmt.Errorf("the copy of %s %s has changed, and the cache still has the earlier one", r.kind.reference, o.key)
	}
	after, ok := before.DeepCopyObject().(T)
	if !ok {
		return fmt.Errorf("%T is not a %s", before, r.kind.reference)
	}
	r.kind.fill(after, want)
	copyStamp(after, want)
	return r.MemberWriter.PatchStamped(ctx, actor, before, after)
}

// refusedByMember reports on the Pods why the member's API server rejects the copy, for example
// because of a quota or an admission policy. It returns the error for a retry with backoff.
func (r *copier[T]) refusedByMember(ctx context.Context, o observed, doing string, err error) error {
	what := r.kind.reference + " " + o.key.Name
	if r.podTokens != nil {
		what = "the Pod's tokens"
	}
	if refusal := report.MemberWriteRefusal(r.Registration, doing, what, err); refusal != nil {
		return errors.Join(err, r.reportRefused(ctx, o.users, refusal))
	}
	return err
}

func (r *copier[T]) reading(key types.NamespacedName) reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.readings[key]
}

func (r *copier[T]) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.readings, key)
}

// remember records when the root was read, and for which Pods. It returns the time until the next
// read, or 0 if an event will trigger the read.
func (r *copier[T]) remember(o observed) time.Duration {
	if len(o.users) == 0 || !o.copiesAllowed() {
		r.forget(o.key)
		return 0
	}
	now := r.Clock.Now()
	if !o.rootRead {
		return max(r.reading(o.key).next.Sub(now), time.Second)
	}
	pause := o.pause
	users := sets.New[types.UID]()
	for _, pod := range o.users {
		users.Insert(pod.UID)
		if o.want == nil && o.leaf == nil && podRequires(pod, r.kind.reference, o.key.Name) {
			pause = missingReadInterval
		}
	}
	pause = wait.Jitter(pause, readJitter)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readings[o.key] = reading{next: now.Add(pause), users: users}
	return pause
}
