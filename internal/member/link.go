package member

import (
	"context"
	"fmt"
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
	"github.com/xylem-io/xylem/internal/guarded/settling"
	"github.com/xylem-io/xylem/internal/member/budget"
	"github.com/xylem-io/xylem/internal/member/metrics"
	"github.com/xylem-io/xylem/internal/member/restores"
	"github.com/xylem-io/xylem/internal/member/streams"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/proof/batch"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/route/urgency"
)

const (
	// firstRetry is the first backoff of a failing request. The backoff grows exponentially up to
	// Link.Recheck, so by default, the controller retries within half a minute after the cause is
	// fixed.
	firstRetry = 50 * time.Millisecond
	// DefaultRecheck is the default of --recheck-interval.
	DefaultRecheck = 30 * time.Second
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
	Snapshots     *Optional
	HostSnapshots *route.Optional
	// Attachments is the cache of the member's VolumeAttachments. Not every member lets Xylem read
	// them.
	Attachments *Optional
	// Rejections are the namespaces that the member rejects.
	Rejections Rejections
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
	// Recheck is the maximum backoff of a failing request, and the interval at which a controller
	// checks again what no event reports.
	Recheck time.Duration
	// Leaf writes to the member.
	Leaf *guarded.Leaf
	// Root writes to the host on behalf of this member.
	Root *guarded.Root
	// Streams opens log streams and connections to the member's Pods.
	Streams *streams.Opener
	// Credentials are the link's current credentials.
	Credentials *Credentials
	// MayDestroy returns an error if destruction is suspended.
	MayDestroy func() error
	// Restores returns when the member and the host were last restored, according to this member and
	// to all others. It sends no request.
	Restores func() restores.Times
	// Unrestored proves, by a live read, that the member was not restored; see
	// Fence.MemberCurrent.
	Unrestored func(context.Context) error
	// Note annotates this host's fence in the member; see Fence.Note.
	Note func(context.Context, func(*coordinationv1.Lease) (*coordinationv1.Lease, error)) error

	// waiting shares the live lists of Proof.
	waiting batch.Reads[string, []corev1.PersistentVolumeClaim]
	// recorded does the same for the host's PVs.
	recorded batch.Reads[struct{}, map[string][]types.UID]

	Limiter     *budget.Limiter
	Log         logr.Logger
	PublishTo   func(NodeFacts)
	controllers []controller.Controller
	sources     [][]source.Source // in the order of controllers
	Runnables   []func(context.Context) error
}

// Controllers returns the added controllers in order.
func (l *Link) Controllers() []controller.Controller { return l.controllers }

// Sources returns the event sources of each added controller, in order.
func (l *Link) Sources() [][]source.Source { return l.sources }

// NodeFacts summarizes a member's nodes.
type NodeFacts struct {
	// Capacity and Allocatable are the totals of the ready, schedulable nodes. Allocatable excludes
	// the requests of Pods that this host did not create.
	Capacity, Allocatable corev1.ResourceList
	// Architecture and OperatingSystem are empty unless they are the same on all of these nodes.
	Architecture, OperatingSystem string
	// Nodes is the number of all nodes. Ready is the number of ready nodes, including cordoned and
	// tainted ones.
	Nodes, Ready int
}

// Owner identifies the member in host objects.
func (l *Link) Owner() route.Owner {
	return route.Owner{NodeName: l.NodeName, ClusterID: l.ClusterID}
}

// Place describes the member for the placement rules.
func (l *Link) Place() placement.Member {
	return placement.Member{Member: l.Member, Rules: l.Rules}
}

// Publish reports the summary of the member's nodes to the fleet.
func (l *Link) Publish(facts NodeFacts) { l.PublishTo(facts) }

// Controller adds a controller to the link, with its own queue and workers. The controller starts
// once the member's caches are synced.
func (l *Link) Controller(name string, workers int, r reconcile.Reconciler, sources ...source.Source) error {
	c, err := controller.NewTypedUnmanaged(name, controller.Options{
		Reconciler:              settling.Reconciler(r),
		MaxConcurrentReconciles: workers,
		SkipNameValidation:      ptr.To(true), // each member has a controller with this name
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, l.Recheck),
		NewQueue: func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return urgency.NewQueue(workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{
				Name: name, MetricsProvider: metrics.Queue{Cluster: l.Registration},
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

// Run adds a runnable, which starts once the member's caches are synced. It must return when
// its context ends.
func (l *Link) Run(runnable func(context.Context) error) {
	l.Runnables = append(l.Runnables, runnable)
}

// LeafSource returns a source of the member's events of one kind, from its cache. It skips
// events that a predicate rejects, and unchanged objects after a relist.
func (l *Link) LeafSource(object client.Object, requests route.Requests, only ...predicate.Predicate) source.Source {
	only = append(only, route.Changed())
	return source.Kind(l.Cache, object, urgency.Handler(requests), only...)
}

// RootSource returns a source of the host's events of one kind that concern this member. It
// skips updates that do not concern the controller.
func (l *Link) RootSource(object client.Object, requests route.Requests, only ...route.Concerns) source.Source {
	return l.Router.Source(l.Owner(), object, requests, only...)
}

// LeafSnapshotSource is LeafSource for snapshot kinds, once the member serves them.
func (l *Link) LeafSnapshotSource(object client.Object, requests route.Requests) source.Source {
	return l.Snapshots.Events(object, urgency.Handler(requests))
}

// HostSnapshotSource returns a source of the host's events for snapshot kinds, once the host serves
// them. It includes objects of all members.
func (l *Link) HostSnapshotSource(object client.Object, requests route.Requests) source.Source {
	return l.HostSnapshots.Events(object, urgency.Handler(requests))
}

// LeafSnapshots returns the cache of the member's snapshots, or nil if the member does not serve
// them.
func (l *Link) LeafSnapshots() client.Reader {
	if l.Snapshots == nil || l.Snapshots.Cache() == nil {
		return nil
	}
	return l.Snapshots.Cache()
}

// LeafAttachmentSource is LeafSource for VolumeAttachments, once Xylem may read them.
func (l *Link) LeafAttachmentSource(object client.Object, requests route.Requests, only ...predicate.Predicate) source.Source {
	return l.Attachments.Events(object, urgency.Handler(requests), only...)
}

// LeafAttachments returns the cache of the member's VolumeAttachments, or nil if Xylem may not read
// them or has not read them yet.
func (l *Link) LeafAttachments() client.Reader {
	if l.Attachments == nil || l.Attachments.Cache() == nil {
		return nil
	}
	return l.Attachments.Cache()
}

// RootEnds returns a source of the deletions of one kind in the host, including those that do not
// concern this member. requests looks up the member's objects for the deleted ones.
func (l *Link) RootEnds(object client.Object, requests route.Requests) source.Source {
	return l.Router.Ends(object, requests)
}

// Own skips host objects that lack this member's label. It also skips promises, because every
// member gets their events.
func (l *Link) Own(requests route.Requests) route.Requests {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		if obj.GetLabels()[v1alpha1.LabelClusterID] != l.ClusterID {
			return nil
		}
		return requests(ctx, obj)
	}
}

// SameKey enqueues the object's own namespace and name. Leaf Pods and claims share them with
// their roots.
func SameKey(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
}

// LastRestores returns when the member and the host were last restored.
func (l *Link) LastRestores() restores.Times {
	if l.Restores == nil {
		return restores.Times{} // unset in controller tests
	}
	return l.Restores()
}

// Proof returns a prover that reads both clusters live, for the evidence of a destructive
// write.
func (l *Link) Proof() proof.Prover {
	p := proof.Prover{
		Member: l.Member, Host: l.Host, HostLive: l.HostLive, Cache: l.Cache, Live: l.Live,
		Clock: clock.RealClock{}, MayBeRestored: func(leaf metav1.Object) bool { return mirror.Copied(leaf) || l.LastRestores().Predates(leaf) }, MayLackRoot: l.LastRestores().MayLackRoot,
		Unrestored: l.Unrestored, Waiting: &l.waiting, Recorded: &l.recorded,
	}
	if p.Unrestored == nil {
		p.Unrestored = func(context.Context) error { return nil } // unset in controller tests
	}
	return p
}
