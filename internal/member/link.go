package member

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
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
	"github.com/xylem-io/xylem/internal/member/budget"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/member/metrics"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/route"
)

const (
	// firstRetry and LastRetry bound the exponential backoff of a request that
	// fails: a cause that goes away is noticed within half a minute.
	firstRetry = 50 * time.Millisecond
	// LastRetry is the longest pause.
	LastRetry = 30 * time.Second
)

// Link is a live connection to a member, for as long as its context lives: what
// the controllers of that member work with.
type Link struct {
	mirror.Member
	// Rules of its registration.
	Rules placement.Rules

	// Cache of the member: stamped Pods, claims, ConfigMaps and Secrets of this
	// host; all PVs, Nodes, Namespaces, StorageClasses and CSIStorageCapacities,
	// reduced; Warning events.
	Cache cache.Cache
	// Workloads is a cache of the member's other Pods, reduced to what they request.
	Workloads cache.Cache
	// Snapshots of the member, which it may not serve; those of the host are in Host, once
	// HostSnapshots serves them.
	Snapshots     *Snapshots
	HostSnapshots *route.Optional
	// Live reads from the member, bypassing caches.
	Live client.Reader
	// Discovery and Metadata read, live, what the member has of any kind: to prove
	// that a namespace holds nothing.
	Discovery discovery.DiscoveryInterfaceWithContext
	Metadata  metadata.Interface
	// Host is the host's cache, HostLive bypasses it.
	Host, HostLive client.Reader
	// Router passes on the host's events that concern this member.
	Router *route.Router
	// Recorder of events on objects of the host.
	Recorder events.EventRecorder
	// Clock is the wall clock.
	Clock clock.PassiveClock
	// Leaf writes to the member.
	Leaf *guarded.Leaf
	// Root writes to the host on behalf of this member.
	Root *guarded.Root
	// Streams are for what users stream from the member's Pods.
	Streams *Streams
	// Credentials that the link uses.
	Credentials *Credentials
	// MayDestroy is nil unless destruction is suspended.
	MayDestroy func() error
	// Restores reports when the member and the host were last restored. It reads memory.
	Restores func() fencing.Restores
	// Unrestored reads the member live; see Fence.MemberCurrent.
	Unrestored func(context.Context) error
	// Note annotates this host's fence in the member; see Fence.Note.
	Note func(context.Context, func(*coordinationv1.Lease) (*coordinationv1.Lease, error)) error

	Limiter     *budget.Limiter
	Log         logr.Logger
	PublishTo   func(NodeFacts)
	controllers []controller.Controller
	sources     [][]source.Source // of each of them
	Runnables   []func(context.Context) error
}

// Controllers that were added, in their order.
func (l *Link) Controllers() []controller.Controller { return l.controllers }

// Sources of the controllers that were added, in their order: what enqueues their requests.
func (l *Link) Sources() [][]source.Source { return l.sources }

// NodeFacts is what a member's nodes add up to.
type NodeFacts struct {
	// Capacity and Allocatable of the ready, schedulable nodes; Allocatable less
	// what Pods that are not this host's request there.
	Capacity, Allocatable corev1.ResourceList
	// Architecture and OperatingSystem if all of those nodes agree, else empty.
	Architecture, OperatingSystem string
	// Nodes counts them; Ready counts all that are ready, cordoned ones and those
	// that are kept for others included.
	Nodes, Ready int
}

// Owner is the member as objects of the host name it.
func (l *Link) Owner() route.Owner {
	return route.Owner{NodeName: l.NodeName, ClusterID: l.ClusterID}
}

// Place is the member as a place for claims and Pods, as far as the host's rules go.
func (l *Link) Place() placement.Member {
	return placement.Member{Member: l.Member, Rules: l.Rules}
}

// Publish reports to the fleet what the member's nodes add up to.
func (l *Link) Publish(facts NodeFacts) { l.PublishTo(facts) }

// Controller adds a controller to the link, with a queue and workers of its
// own; it starts once the member's caches are synced.
func (l *Link) Controller(name string, workers int, r reconcile.Reconciler, sources ...source.Source) error {
	c, err := controller.NewTypedUnmanaged(name, controller.Options{
		Reconciler:              guarded.Settling(r),
		MaxConcurrentReconciles: workers,
		SkipNameValidation:      ptr.To(true), // one of that name for each member
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, LastRetry),
		NewQueue: func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return route.NewQueue(workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{
				Name: name, MetricsProvider: metrics.Queue{Cluster: l.Registration},
			}), clock.RealClock{})
		},
		LogConstructor: func(request *reconcile.Request) logr.Logger {
			log := l.Log.WithValues("controller", name)
			if request == nil {
				return log.V(1) // of its start and end; the link says that once for all
			}
			return log.WithValues("request", request.String())
		},
	})
	if err != nil {
		return fmt.Errorf("make controller %s: %w", name, err)
	}
	for _, src := range sources {
		if err := c.Watch(src); err != nil {
			return fmt.Errorf("add a source to controller %s: %w", name, err)
		}
	}
	l.controllers, l.sources = append(l.controllers, c), append(l.sources, sources)
	return nil
}

// Run adds something that runs for as long as the link lives, beginning when
// the member's caches are synced. It must return when its context ends.
func (l *Link) Run(runnable func(context.Context) error) {
	l.Runnables = append(l.Runnables, runnable)
}

// LeafSource is a source of the member's events of one kind, from its cache; of those
// that the predicates let through, and that are not of a list that was made again.
func (l *Link) LeafSource(object client.Object, requests route.Requests, only ...predicate.Predicate) source.Source {
	only = append(only, route.Changed())
	return source.Kind(l.Cache, object, route.Handler(requests), only...)
}

// RootSource is a source of the host's events of one kind that concern this
// member, without the updates that do not concern the controller.
func (l *Link) RootSource(object client.Object, requests route.Requests, only ...route.Concerns) source.Source {
	return l.Router.Source(l.Owner(), object, requests, only...)
}

// LeafSnapshotSource is LeafSource for the kinds of snapshots, once the member serves them.
func (l *Link) LeafSnapshotSource(object client.Object, requests route.Requests) source.Source {
	return l.Snapshots.Events(object, route.Handler(requests))
}

// HostSnapshotSource is a source of the host's events of the kinds of snapshots, once the host
// serves them, whichever member they concern.
func (l *Link) HostSnapshotSource(object client.Object, requests route.Requests) source.Source {
	return l.HostSnapshots.Events(object, route.Handler(requests))
}

// LeafSnapshots is the cache of the member's snapshots; nil if it does not serve them.
func (l *Link) LeafSnapshots() client.Reader {
	if l.Snapshots == nil || l.Snapshots.Cache() == nil {
		return nil
	}
	return l.Snapshots.Cache()
}

// RootEnds is a source of the deletions of one kind in the host, also of what does not concern this
// member: what it has of that is for requests to find out.
func (l *Link) RootEnds(object client.Object, requests route.Requests) source.Source {
	return l.Router.Ends(object, requests)
}

// Own leaves out the objects of the host that are not labelled as this member's:
// promises, which every member learns of, among them.
func (l *Link) Own(requests route.Requests) route.Requests {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		if obj.GetLabels()[v1alpha1.LabelClusterID] != l.ClusterID {
			return nil
		}
		return requests(ctx, obj)
	}
}

// SameKey enqueues the request of an object's own namespace and name: leaf Pods
// and claims have those of their roots.
func SameKey(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
}

// LastRestores reports when the member and the host were last restored.
func (l *Link) LastRestores() fencing.Restores {
	if l.Restores == nil {
		return fencing.Restores{} // in tests of controllers
	}
	return l.Restores()
}

// Proof reads both clusters live, to prove what a destructive write is decided on.
func (l *Link) Proof() proof.Prover {
	p := proof.Prover{
		Member: l.Member, Host: l.Host, HostLive: l.HostLive, Cache: l.Cache, Live: l.Live,
		Clock: clock.RealClock{}, MayBeRestored: l.LastRestores().Predates, Unrestored: l.Unrestored,
	}
	if p.Unrestored == nil {
		p.Unrestored = func(context.Context) error { return nil } // in tests of controllers
	}
	return p
}
