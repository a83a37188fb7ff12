package member

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member/budget"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/route"
)

const (
	// firstRetryBackoff is the first backoff of a failing request. The backoff grows exponentially up to
	// Link.RecheckInterval, so by default, the controller retries within half a minute after the cause is
	// fixed.
	firstRetryBackoff = 50 * time.Millisecond
	// DefaultRecheckInterval is the default of --recheck-interval.
	DefaultRecheckInterval = 30 * time.Second
)

// Link is a live connection to a member. It provides everything that the member's controllers use
// until its context ends.
type Link struct {
	mirror.Member
	// Rules are the placement rules of the member's registration.
	Rules placement.Rules

	// Cache is the member's cache. It contains the Pods, claims, ConfigMaps and Secrets with this
	// host's stamp (the last two with digests in place of their contents), all PVs, Nodes,
	// Namespaces, StorageClasses and CSIStorageCapacities (reduced), and Warning events.
	Cache cache.Cache
	// Workloads is a cache of the member's other Pods, reduced to their resource requests.
	Workloads cache.Cache
	// Snapshots is the cache of the member's snapshots. Not every member serves them. Host can read
	// the host's snapshots once HostSnapshots serves them.
	Snapshots     *OptionalCache
	HostSnapshots *route.OptionalCache
	// Attachments is the cache of the member's VolumeAttachments. Not every member lets Xylem read
	// them.
	Attachments *OptionalCache
	// Budgets is the cache of the member's PodDisruptionBudgets. Not every member lets Xylem create them.
	Budgets *OptionalCache
	// Services is the cache of the Services and EndpointSlices that this host created in the member. Not every
	// member lets Xylem create them.
	Services *OptionalCache
	// NamespaceRejections are the namespaces that the member rejects.
	NamespaceRejections NamespaceRejections
	// Live reads from the member, bypassing caches.
	Live client.Reader
	// Discovery and Metadata read objects of any kind live, to prove that a namespace is empty.
	Discovery discovery.DiscoveryInterfaceWithContext
	Metadata  metadata.Interface
	// Host reads from the host's cache. HostLive bypasses it.
	Host, HostLive client.Reader
	// Router forwards the host's events that concern this member.
	Router *route.Router
	// Recorder emits events on objects in the host.
	Recorder events.EventRecorder
	// Clock is the wall clock.
	Clock clock.PassiveClock
	// RecheckInterval is the maximum backoff of a failing request, and the interval at which a controller
	// checks again what no event reports.
	RecheckInterval time.Duration
	// MemberWriter writes to the member.
	MemberWriter *guarded.MemberWriter
	// HostWriter writes to the host on behalf of this member.
	HostWriter *guarded.HostWriter
	// NodeIdentity sends requests to the host as a virtual node.
	NodeIdentity *guarded.NodeIdentity
	// HostSecrets reads the host's Secrets live, unless SecretsAsNode is set: the link then reads them as the node of
	// a Pod that refers to them, so only after that Pod is bound.
	HostSecrets   client.Reader
	SecretsAsNode bool
	// Streams opens log streams and connections to the member's Pods.
	Streams *StreamOpener
	// Credentials are the link's current credentials.
	Credentials *Credentials
	// CheckNotSuspended returns an error if destruction is suspended.
	CheckNotSuspended func() error
	// RestoreTimes returns when the member and the host were last restored, according to this member and
	// to all others. It sends no request.
	RestoreTimes func() fencing.RestoreTimes
	// CheckUnrestored proves, by a live read, that the member was not restored; see
	// Fence.CheckMemberCurrent.
	CheckUnrestored func(context.Context) error
	// AnnotateFence annotates this host's fence in the member; see Fence.AnnotateLease.
	AnnotateFence func(context.Context, func(*coordinationv1.Lease) (*coordinationv1.Lease, error)) error

	// waitingClaims shares the live lists of NewProver.
	waitingClaims proof.SharedReads[string, []corev1.PersistentVolumeClaim]
	// recordedLeaves does the same for the host's PVs.
	recordedLeaves proof.SharedReads[struct{}, map[string][]types.UID]

	Limiter       *budget.MemoryLimiter
	Log           logr.Logger
	OnNodeSummary func(NodeSummary)
	controllers   []controller.Controller
	sources       [][]source.Source // in the order of controllers
	Runnables     []func(context.Context) error
}

// Controllers returns the added controllers in order.
func (l *Link) Controllers() []controller.Controller { return l.controllers }

// ControllerSources returns the event sources of each added controller, in order.
func (l *Link) ControllerSources() [][]source.Source { return l.sources }

// NodeSummary summarizes a member's nodes.
type NodeSummary struct {
	// Capacity and Allocatable are the totals of the ready, schedulable nodes. Allocatable excludes
	// the requests of Pods that this host did not create.
	Capacity, Allocatable corev1.ResourceList
	// Architecture and OperatingSystem are empty unless they are the same on all of these nodes.
	Architecture, OperatingSystem string
	// ResizeFeatures are the features for resizes of Pods that all of these nodes declare.
	ResizeFeatures []string
	// Nodes is the number of all nodes. Ready is the number of ready nodes, including cordoned and
	// tainted ones.
	Nodes, Ready int
	// GroupRules are the rules in spec.nodes by which the nodes are divided. Groups are the groups that have nodes,
	// by name. GroupProblem describes rules that match no node, nodes
	// that match none or several, and groups that exceed the limit; it is "" if there are none of these.
	GroupRules   []v1alpha1.NodeGroup
	Groups       []NodeGroup
	GroupProblem string
}

// GroupNamed returns the group with a name, or nil.
func (s *NodeSummary) GroupNamed(name string) *NodeGroup {
	i := slices.IndexFunc(s.Groups, func(g NodeGroup) bool { return g.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Groups[i]
}

// NodeGroup is a group of a member's nodes, which one virtual node represents.
type NodeGroup struct {
	// Name is the first part of the virtual node's name; see v1alpha1.GroupNodeName.
	Name string
	// Selector selects the group's nodes in the member.
	Selector corev1.NodeSelectorTerm
	// Labels are the labels that the virtual node gets from the group.
	Labels map[string]string
	// Topologies are the keys of the labels for the topologies of volumes that the group's nodes can use.
	Topologies []string
	// Cordoned means that all of the group's nodes are cordoned. Pressures are the types of the conditions
	// that report a shortage on all of them.
	Cordoned  bool
	Pressures []corev1.NodeConditionType
	// Summary summarizes the group's nodes.
	Summary NodeSummary
}

// RouteOwner identifies the member in host objects.
func (l *Link) RouteOwner() route.Owner {
	return route.Owner{NodeName: l.NodeName, ClusterID: l.ClusterID}
}

// HasPod reports whether a Pod is bound to the node of the member, or of a group of its nodes, as far as the host's cache
// shows.
func (l *Link) HasPod(ctx context.Context, pod *corev1.Pod) (bool, error) {
	if name := pod.Spec.NodeName; name == l.NodeName || !l.HasNode(name) {
		return l.HasNode(name), nil
	}
	node, err := index.FindObject[corev1.Node](ctx, l.Host, index.ClusterScopedKey(pod.Spec.NodeName))
	return placement.IsPodInMember(pod, node, l.Member), err
}

// SecretReader returns a reader of the host's Secrets to which the Pods on a virtual node refer.
func (l *Link) SecretReader(node string) (client.Reader, error) {
	if l.SecretsAsNode {
		return l.NodeIdentity.ReaderAs(node)
	}
	return l.HostSecrets, nil
}

// PlacementMember describes the member for the placement rules.
func (l *Link) PlacementMember() placement.Member {
	return placement.Member{Member: l.Member, Rules: l.Rules}
}

// PublishNodeSummary reports the summary of the member's nodes to the fleet.
func (l *Link) PublishNodeSummary(facts NodeSummary) { l.OnNodeSummary(facts) }

// AddController adds a controller to the link, with its own queue and workers. The controller starts
// once the member's caches are synced.
func (l *Link) AddController(name string, workers int, r reconcile.Reconciler, sources ...source.Source) error {
	c, err := controller.NewTypedUnmanaged(name, controller.Options{
		Reconciler:              guarded.WrapReconciler(r),
		MaxConcurrentReconciles: workers,
		SkipNameValidation:      ptr.To(true), // each member has a controller with this name
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetryBackoff, l.RecheckInterval),
		NewQueue: func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return route.NewQueue(workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{
				Name: name, MetricsProvider: QueueMetrics{Cluster: l.Registration},
			}), clock.RealClock{})
		},
		LogConstructor: func(request *reconcile.Request) logr.Logger {
			log := l.Log.WithValues("controller", name)
			if request == nil {
				return log.V(1) // do not log each controller's start and end; the link logs its own
			}
			return log.WithValues("request", request.String())
		},
	})
	if err != nil {
		return fmt.Errorf("create controller %s: %w", name, err)
	}
	for _, src := range sources {
		if err := c.Watch(src); err != nil {
			return fmt.Errorf("add a source to controller %s: %w", name, err)
		}
	}
	l.controllers, l.sources = append(l.controllers, c), append(l.sources, sources)
	return nil
}

// AddRunnable adds a runnable, which starts once the member's caches are synced. It must return when
// its context ends.
func (l *Link) AddRunnable(runnable func(context.Context) error) {
	l.Runnables = append(l.Runnables, runnable)
}

// LeafObjectSource returns a source of the member's events of one kind, from its cache. It skips
// events that a predicate rejects, and unchanged objects after a relist.
func (l *Link) LeafObjectSource(object client.Object, requests route.RequestsOfObject, only ...predicate.Predicate) source.Source {
	only = append(only, route.ChangedPredicate())
	return source.Kind(l.Cache, object, route.EnqueueHandler(requests), only...)
}

// RootObjectSource returns a source of the host's events of one kind that concern this member. It
// skips updates that do not concern the controller.
func (l *Link) RootObjectSource(object client.Object, requests route.RequestsOfObject, only ...route.ConcernsFunc) source.Source {
	return l.Router.MemberSource(l.RouteOwner(), object, requests, only...)
}

// LeafSnapshotSource is LeafObjectSource for snapshot kinds, once the member serves them.
func (l *Link) LeafSnapshotSource(object client.Object, requests route.RequestsOfObject) source.Source {
	return l.Snapshots.EventSource(object, route.EnqueueHandler(requests))
}

// HostSnapshotSource returns a source of the host's events for snapshot kinds, once the host serves
// them. It includes objects of all members.
func (l *Link) HostSnapshotSource(object client.Object, requests route.RequestsOfObject) source.Source {
	return l.HostSnapshots.EventSource(object, route.EnqueueHandler(requests))
}

// LeafSnapshotCache returns the cache of the member's snapshots, or nil if the member does not serve
// them.
func (l *Link) LeafSnapshotCache() client.Reader {
	return l.Snapshots.servedReader()
}

// LeafAttachmentSource is LeafObjectSource for VolumeAttachments, once Xylem may read them.
func (l *Link) LeafAttachmentSource(object client.Object, requests route.RequestsOfObject, only ...predicate.Predicate) source.Source {
	return l.Attachments.EventSource(object, route.EnqueueHandler(requests), only...)
}

// LeafAttachmentCache returns the cache of the member's VolumeAttachments, or nil if Xylem may not read
// them or has not read them yet.
func (l *Link) LeafAttachmentCache() client.Reader {
	return l.Attachments.servedReader()
}

// LeafBudgetSource is LeafObjectSource for PodDisruptionBudgets, once Xylem may create them.
func (l *Link) LeafBudgetSource(object client.Object, requests route.RequestsOfObject, only ...predicate.Predicate) source.Source {
	return l.Budgets.EventSource(object, route.EnqueueHandler(requests), only...)
}

// LeafBudgetCache returns the cache of the member's PodDisruptionBudgets, or nil if Xylem may not create them or has
// not read them yet.
func (l *Link) LeafBudgetCache() client.Reader {
	return l.Budgets.servedReader()
}

// LeafServiceSource is LeafObjectSource for Services and EndpointSlices, once Xylem may create them.
func (l *Link) LeafServiceSource(object client.Object, requests route.RequestsOfObject, only ...predicate.Predicate) source.Source {
	return l.Services.EventSource(object, route.EnqueueHandler(requests), only...)
}

// LeafServiceCache returns the cache of the member's Services and EndpointSlices, or nil if Xylem may not create
// them or has not read them yet.
func (l *Link) LeafServiceCache() client.Reader {
	return l.Services.servedReader()
}

// RootDeletionSource returns a source of the deletions of one kind in the host, including those that do not
// concern this member. requests looks up the member's objects for the deleted ones.
func (l *Link) RootDeletionSource(object client.Object, requests route.RequestsOfObject) source.Source {
	return l.Router.DeletionsSource(object, requests)
}

// OnlyOwnObjects skips host objects that lack this member's label. It also skips promises, because every
// member gets their events.
func (l *Link) OnlyOwnObjects(requests route.RequestsOfObject) route.RequestsOfObject {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		if obj.GetLabels()[v1alpha1.LabelClusterID] != l.ClusterID {
			return nil
		}
		return requests(ctx, obj)
	}
}

// RequestOfSameKey enqueues the object's own namespace and name. Leaf Pods and claims share them with
// their roots.
func RequestOfSameKey(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
}

// LastRestoreTimes returns when the member and the host were last restored.
func (l *Link) LastRestoreTimes() fencing.RestoreTimes {
	if l.RestoreTimes == nil {
		return fencing.RestoreTimes{} // unset in controller tests
	}
	return l.RestoreTimes()
}

// NewProver returns a prover that reads both clusters live, for the evidence of a destructive
// write.
func (l *Link) NewProver() proof.Prover {
	p := proof.Prover{
		Member: l.Member, Host: l.Host, HostLive: l.HostLive, Cache: l.Cache, Live: l.Live,
		Clock: clock.RealClock{}, MayBeRestored: func(leaf metav1.Object) bool {
			return mirror.IsLeafCreatedByOthers(leaf) || l.LastRestoreTimes().MayBeFromBackup(leaf)
		}, MayLackRoot: l.LastRestoreTimes().MayLackRoot,
		CheckUnrestored: l.CheckUnrestored, WaitingClaims: &l.waitingClaims, RecordedLeaves: &l.recordedLeaves,
	}
	if p.CheckUnrestored == nil {
		p.CheckUnrestored = func(context.Context) error { return nil } // unset in controller tests
	}
	return p
}
