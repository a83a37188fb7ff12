package virtualnode

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/fleet"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/nodes"
	"github.com/xylem-io/xylem/internal/route"
)

const (
	// Name is the name of the controller.
	Name  = "virtual_node"
	actor = guarded.Actor("virtual-node")

	// workers is the number of concurrent reconciles. For each Node, each makes a few cached reads and at most one
	// write to the Node and one to its CSINode.
	workers = 4

	// DefaultGrace is how long a member may be away before its Node is reported as away. It
	// is the node-monitor-grace-period of kube-controller-manager up to 1.31, which is
	// shorter than the 50 s of later versions.
	DefaultGrace = 40 * time.Second

	// groupWrites is the number of writes per second to the Nodes of a member's groups, of which each scheduler and kube-proxy
	// receives an event. groupWritesBurst lets all of them be created, or become away, at once. Writes that only change
	// what a Node's capacity is have a limit of their own, so that a busy member does not delay other writes.
	groupWrites      = 10
	groupWritesBurst = 3 * v1alpha1.MaxNodesOfMember
	groupWriteRetry  = time.Second
	// groupsPause is the minimum time between two reconciles of a registration with groups.
	groupsPause = 500 * time.Millisecond

	// podNodeNameField is the field selector of Pods bound to a node. The API server supports it,
	// but the caches have no index with this name.
	podNodeNameField = "spec.nodeName"
)

// Fleet returns the state of members.
type Fleet interface {
	MemberState(name string) (fleet.State, bool)
	StateChangeSource() source.Source
}

// Reconciler manages the virtual nodes and their CSINodes.
type Reconciler struct {
	// Client reads the host's cache and writes to the host. Live bypasses the cache.
	Client client.Client
	Live   client.Reader
	// Fleet reports whether the members are connected.
	Fleet Fleet
	// Recorder emits events on registrations and Nodes.
	Recorder events.EventRecorder
	// Clock provides the times of conditions. It defaults to the real clock.
	Clock clock.PassiveClock
	// PodIP, if set, is the manager's address, which becomes the Nodes' InternalIP. Port, if
	// not 0, is where the manager serves the kubelet API.
	PodIP string
	Port  int32
	// Grace is how long a member may be away before its Node is reported as away. It defaults
	// to DefaultGrace.
	Grace time.Duration
	// Recheck is the interval at which the controller checks whether the name of a Node or CSINode is free again, and
	// whether the host's API server accepts a CSINode again. If the Node with that name is in the cache, the watch reports
	// this sooner.
	Recheck time.Duration
	// DeclaresFeatures means that the host's Nodes declare features (Kubernetes 1.36 and later, by default).
	DeclaresFeatures bool

	host *guarded.HostWriter // writes CSINodes, which count for no member

	mu sync.Mutex
	// awaySince maps a registration to the time when its member was first observed as away.
	awaySince map[string]time.Time
	// awaitedNodes maps registrations to the names of the Nodes that they wait for. They wait until
	// the Pods on them are gone, or until the name is free.
	awaitedNodes map[string]sets.Set[string]
	// writes limits the writes to the Nodes of groups, by registration.
	writes map[string]*groupWriteLimits
	// visited is when the Nodes of a registration's groups were reconciled last.
	visited map[string]time.Time
	// reported maps the names of registrations' Nodes to the UID of the Node in the last event.
	reported map[string]types.UID
}

// +kubebuilder:rbac:groups=cluster.xylem.io,resources=clusterregistrations,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=nodes/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=csinodes,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=csidrivers,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager adds the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.setDefaults()
	r.host = guarded.NewHostWriter(r.Client, "", guarded.HostOnlyGuard{})
	return ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&v1alpha1.ClusterRegistration{}).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.nodeToRegistrations)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.podToRegistrations)).
		Watches(&storagev1.CSINode{}, handler.EnqueueRequestsFromMapFunc(r.nodeToRegistrations), builder.WithPredicates(route.ChangedPredicate())).
		Watches(&storagev1.CSIDriver{}, handler.EnqueueRequestsFromMapFunc(r.ofCSIDriver), builder.WithPredicates(route.ConcernsPredicate(route.PartChanged(nodes.SchedulerReadsCSINodes)))).
		WatchesRawSource(r.Fleet.StateChangeSource()).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(guarded.WrapReconciler(r))
}

func (r *Reconciler) setDefaults() {
	if r.Clock == nil {
		r.Clock = clock.RealClock{}
	}
	if r.Grace == 0 {
		r.Grace = DefaultGrace
	}
	r.awaySince, r.awaitedNodes, r.reported = map[string]time.Time{}, map[string]sets.Set[string]{}, map[string]types.UID{}
	r.writes, r.visited = map[string]*groupWriteLimits{}, map[string]time.Time{}
}

// Reconcile reconciles the Nodes of one registration, and their CSINodes. A failure of one does not delay the others.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.observeMember(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	existing, err := index.VirtualNodesOf(ctx, r.Client, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	var ofPods []corev1.Pod
	if o.registration != nil && len(o.registration.Spec.Nodes) > 0 {
		if pause := r.pauseOfGroups(request.Name, o.now.Time); pause > 0 {
			return reconcile.Result{RequeueAfter: pause}, nil
		}
		if ofPods, err = index.PodsOfMember(ctx, r.Client, o.registration.NodeName()); err != nil {
			return reconcile.Result{}, err
		}
	}
	all := virtualNodesOf(o, existing, ofPods)
	// Wait for all Nodes that must go before their Pods are counted, so that no deletion is missed.
	awaited := sets.New[string]()
	for i := range all {
		if all[i].mustGo() {
			awaited.Insert(all[i].name)
		}
	}
	r.waitForNodes(request.Name, awaited)
	var again time.Duration
	var failures []error
	first := 0
	if len(all) > 1 {
		first = rand.IntN(len(all)) //nolint:gosec // no secret: so that no Node always exceeds the limit of writes
	}
	for i := range all {
		recheck, err := r.reconcileNode(ctx, request.Name, all[(first+i)%len(all)])
		again, failures = route.SoonerDelay(again, recheck), append(failures, err)
	}
	if o.registration == nil {
		guarded.DeleteWriteMetrics(request.Name) // the metrics may have been deleted before these writes
		if len(existing) == 0 {
			r.forget(request.Name)
		}
	}
	if err := errors.Join(failures...); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// reconcileNode reconciles one Node and its CSINode.
func (r *Reconciler) reconcileNode(ctx context.Context, registration string, o observed) (time.Duration, error) {
	limits := r.limitsOf(registration)
	if !o.isWholeMember() && o.node == nil && !limits.available(o.now.Time) {
		return groupWriteRetry, nil // before the live read
	}
	o, again, err := r.observeNode(ctx, o)
	if err != nil || again > 0 {
		return again, err
	}
	d := decideNode(o)
	if d.nameTaken {
		r.awaitNode(registration, o.name)
	}
	r.reportOnce(registration, o, d)
	if d.do != nil && !o.isWholeMember() && !limits.allow(o.node, d.do, o.now.Time) {
		return route.SoonerDelay(d.again, groupWriteRetry), nil
	}
	err = r.executeAction(ctx, registration, o, d.do)
	if _, removed := d.do.(removeNode); removed || !o.isNodeOf(registration) {
		return d.again, err
	}
	recheck, csiNodeErr := r.reconcileCSINode(ctx, o.node, d.do == nil)
	if csiNodeErr != nil && d.again > 0 { // a retry with backoff could come after the end of the grace period
		ctrl.LoggerFrom(ctx).Error(csiNodeErr, "could not reconcile the CSINode of a virtual node", "cluster", registration, "node", o.node.Name)
		recheck, csiNodeErr = r.Recheck, nil
	}
	return route.SoonerDelay(d.again, recheck), errors.Join(err, csiNodeErr)
}

// observeMember observes what is the same for all Nodes of a registration.
func (r *Reconciler) observeMember(ctx context.Context, name string) (observed, error) {
	o := observed{now: metav1.NewTime(r.Clock.Now()), podIP: r.PodIP, port: r.Port, grace: r.Grace, recheck: r.Recheck, declaresFeatures: r.DeclaresFeatures}
	o.state, o.knownToFleet = r.Fleet.MemberState(name)
	var err error
	o.registration, err = index.FindObject[v1alpha1.ClusterRegistration](ctx, r.Client, index.ClusterScopedKey(name))
	if err == nil && o.registration == nil { // the cache may lack an object that exists
		o.registration, err = index.FindObject[v1alpha1.ClusterRegistration](ctx, r.Live, index.ClusterScopedKey(name))
	}
	if err != nil {
		return o, err
	}
	whole := o
	if o.registration != nil {
		whole.name = o.registration.NodeName()
	}
	o.memberReady = judgeMember(whole).ready
	o.awaySince = r.awaySinceOf(name, o.memberReady, o.now.Time)
	return o, nil
}

// virtualNodesOf returns the Nodes that a member must have, and those that it has and that must go, with what is
// observed about the member. A Node that somebody deleted while Pods are bound to it is needed too.
func virtualNodesOf(member observed, existing []corev1.Node, pods []corev1.Pod) []observed {
	var found []observed
	byName := map[string]int{}
	add := func(name string, change func(*observed)) {
		if _, there := byName[name]; !there {
			byName[name] = len(found)
			o := member
			o.name = name
			change(&o)
			found = append(found, o)
		}
	}
	registration := member.registration
	known := registration != nil && (len(registration.Spec.Nodes) == 0 || // the summary may be that of earlier rules
		member.state.NodeSummary != nil && equality.Semantic.DeepEqual(member.state.NodeSummary.GroupRules, registration.Spec.Nodes))
	switch {
	case registration == nil:
	case len(registration.Spec.Nodes) == 0:
		add(registration.NodeName(), func(*observed) {})
	case known:
		groups := member.state.NodeSummary.Groups
		for i := range groups {
			add(v1alpha1.GroupNodeName(groups[i].Name, registration.NodeName()), func(o *observed) { o.group = &groups[i] })
		}
	}
	without := func(o *observed) { o.lost = known || registration != nil && o.isWholeMember() }
	for i := range existing {
		if registration == nil || registration.HasNode(existing[i].Name) {
			add(existing[i].Name, without)
			found[byName[existing[i].Name]].node = &existing[i]
		}
	}
	for i := range pods {
		add(pods[i].Spec.NodeName, without)
	}
	return found
}

// observeNode observes one Node. again, if set, is when to observe a Node that must go the next time, because nothing
// can be decided before.
func (r *Reconciler) observeNode(ctx context.Context, o observed) (_ observed, again time.Duration, err error) {
	if o.node == nil {
		o.node, err = r.findNode(ctx, o)
	}
	if err != nil || !o.mustGo() || o.node == nil && o.registration != nil && o.registration.Status.ClusterID == "" {
		return o, 0, err
	}
	gone, ended := o.registration == nil, o.state.LinkRemoved
	cached, err := index.PodsOnNode(ctx, r.Client, o.name)
	if err != nil {
		return o, 0, err
	}
	o.pods = countStaying(cached, gone, ended)
	if o.goesAlone() {
		nominated, err := index.PodsNominatedTo(ctx, r.Client, o.name)
		if err != nil {
			return o, 0, err
		}
		o.pods += len(nominated)
	}
	switch {
	case o.pods > 0:
	case o.lostBefore() && o.lostWait() > 0:
		return o, o.lostWait(), nil // no live read yet
	case o.goesAlone() && o.node != nil && !o.lostBefore():
		o.pods = 1 // the Node is cordoned first, so its Pods need not be counted yet
	default:
		o.pods, err = r.countPodsOn(ctx, o.name, gone, ended)
	}
	return o, 0, err
}

// lostBefore reports whether the Node is cordoned because it has lost its group.
func (o observed) lostBefore() bool {
	return o.goesAlone() && o.node != nil && o.node.Spec.Unschedulable && requestedBefore(o.node).Lost != nil
}

// findNode returns the Node with the observed name. If the cache lacks it, findNode reads it live, because the cache may be
// stale, or limited to Xylem's Nodes.
func (r *Reconciler) findNode(ctx context.Context, o observed) (*corev1.Node, error) {
	node, err := index.FindObject[corev1.Node](ctx, r.Client, index.ClusterScopedKey(o.name))
	if err == nil && node == nil && o.registration != nil && o.registration.Status.ClusterID != "" {
		return index.FindObject[corev1.Node](ctx, r.Live, index.ClusterScopedKey(o.name))
	}
	return node, err
}

// countStaying counts the Pods of a Node that keep it, which are all but those of DaemonSets. Once the registration is gone,
// or its link has ended, those that only finalizers keep do not count either. Once the link has ended,
// Pods without a leaf do not count, because they will get none; before that, a leaf may exist that is
// not recorded yet (I6).
func countStaying(pods []corev1.Pod, gone, ended bool) int {
	count := 0
	for i := range pods {
		pod := &pods[i]
		if podspec.IsDaemonSetPod(pod) || (gone || ended) && podstatus.OnlyFinalizersRemain(pod) || ended && !podstatus.HadLeafPod(pod) {
			continue
		}
		count++
	}
	return count
}

// countPodsOn counts the Pods that keep a Node. It reads live, because a Node without such Pods is deleted.
func (r *Reconciler) countPodsOn(ctx context.Context, node string, gone, ended bool) (int, error) {
	var list corev1.PodList
	count := 0
	if err := index.ListPages(ctx, r.Live, &list, func() {
		count += countStaying(list.Items, gone, ended)
	}, client.MatchingFields{podNodeNameField: node}); err != nil {
		return 0, fmt.Errorf("list the Pods bound to node %s: %w", node, err)
	}
	return count, nil
}

func (r *Reconciler) executeAction(ctx context.Context, name string, o observed, do nodeAction) error {
	host := guarded.NewHostWriter(r.Client, name, guarded.HostOnlyGuard{})
	log := ctrl.LoggerFrom(ctx).WithValues("cluster", name)
	switch do := do.(type) {
	case nil:
	case createNode:
		log.Info("creating the virtual node", "node", do.node.Name)
		return host.CreateOwned(ctx, actor, do.node)
	case patchNode:
		return host.PatchOwned(ctx, actor, o.node, do.after)
	case patchNodeStatus:
		return host.PatchNodeStatus(ctx, actor, o.node, do.after)
	case removeNode:
		log.Info("deleting the virtual node: no Pods are bound to it", "node", o.node.Name)
		return client.IgnoreNotFound(host.DeleteOwned(ctx, o.node))
	}
	return nil
}

// groupWriteLimits limits the writes to the Nodes of a registration's groups.
type groupWriteLimits struct{ nodes, capacities *rate.Limiter }

func (l *groupWriteLimits) available(now time.Time) bool { return l.nodes.TokensAt(now) >= 1 }

// allow reports whether the limits allow a write.
func (l *groupWriteLimits) allow(before *corev1.Node, do nodeAction, now time.Time) bool {
	if status, ok := do.(patchNodeStatus); ok && equality.Semantic.DeepEqual(before.Status.Conditions, status.after.Status.Conditions) {
		return l.capacities.AllowN(now, 1)
	}
	return l.nodes.AllowN(now, 1)
}

func (r *Reconciler) limitsOf(registration string) *groupWriteLimits {
	r.mu.Lock()
	defer r.mu.Unlock()
	limits, found := r.writes[registration]
	if !found {
		limits = &groupWriteLimits{rate.NewLimiter(groupWrites, groupWritesBurst), rate.NewLimiter(groupWrites, v1alpha1.MaxNodesOfMember)}
		r.writes[registration] = limits
	}
	return limits
}

// pauseOfGroups returns how long the next reconcile of a registration with groups must wait. Each write to one of their
// Nodes enqueues the registration, and a reconcile visits all of them.
func (r *Reconciler) pauseOfGroups(registration string, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if left := r.visited[registration].Add(groupsPause).Sub(now); left > 0 && left <= groupsPause {
		return left
	}
	r.visited[registration] = now
	return 0
}

// forget removes what is known about a registration that is gone.
func (r *Reconciler) forget(registration string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.awaySince, registration)
	delete(r.awaitedNodes, registration)
	delete(r.writes, registration)
	delete(r.visited, registration)
	maps.DeleteFunc(r.reported, func(key string, _ types.UID) bool { return strings.HasPrefix(key, registration+"/") })
}

// reportOnce emits an event once for each problem with a Node.
func (r *Reconciler) reportOnce(registration string, o observed, d decision) {
	var about types.UID
	if d.nameTaken || o.registration == nil && o.node != nil {
		about = o.node.UID
	}
	key := registration + "/" + o.name
	r.mu.Lock()
	already := r.reported[key] == about
	if about == "" {
		delete(r.reported, key)
	} else {
		r.reported[key] = about
	}
	r.mu.Unlock()
	switch {
	case already || about == "":
	case d.nameTaken:
		reportNameTaken(r.Recorder, o.registration, o.node)
	default:
		reportRegistrationGone(r.Recorder, o.node, registration, o.pods)
	}
}

// awaySinceOf returns when the member was first observed as away, or zero if it is ready.
func (r *Reconciler) awaySinceOf(name string, ready bool, now time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ready {
		delete(r.awaySince, name)
		return time.Time{}
	}
	since, ok := r.awaySince[name]
	if !ok {
		since = now
		r.awaySince[name] = since
	}
	return since
}

func (r *Reconciler) waitForNodes(registration string, nodes sets.Set[string]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.awaitedNodes[registration] = nodes
}

func (r *Reconciler) awaitNode(registration, node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.awaitedNodes[registration].Insert(node)
}

// nodeToRegistrations enqueues the registration of a Node or its CSINode, and those that wait for the Node to be deleted.
func (r *Reconciler) nodeToRegistrations(_ context.Context, node client.Object) []reconcile.Request {
	requests := r.registrationsWaitingFor(node.GetName())
	if name := node.GetLabels()[v1alpha1.LabelCluster]; name != "" {
		requests = append(requests, requestForDriver(name))
	}
	return requests
}

// podToRegistrations enqueues the registrations that wait for Pods on a Pod's node.
func (r *Reconciler) podToRegistrations(_ context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" {
		return nil
	}
	return r.registrationsWaitingFor(pod.Spec.NodeName)
}

func (r *Reconciler) registrationsWaitingFor(node string) []reconcile.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	var requests []reconcile.Request
	for name, awaited := range r.awaitedNodes {
		if awaited.Has(node) {
			requests = append(requests, requestForDriver(name))
		}
	}
	return requests
}

// ofCSIDriver enqueues all registrations with virtual nodes, because the CSIDriver shows whether the host's scheduler
// reads CSINodes.
func (r *Reconciler) ofCSIDriver(ctx context.Context, driver client.Object) []reconcile.Request {
	if driver.GetName() != v1alpha1.ProvisionerName {
		return nil
	}
	list, err := index.ListVirtualNodes(ctx, r.Client)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not list the virtual nodes")
	}
	var requests []reconcile.Request
	for i := range list {
		requests = append(requests, requestForDriver(list[i].Labels[v1alpha1.LabelCluster]))
	}
	return requests
}

func requestForDriver(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}
