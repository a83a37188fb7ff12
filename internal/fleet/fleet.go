package fleet

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded/results"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/internal/member/budget"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/member/hostrevision"
	"github.com/xylem-io/xylem/internal/member/metrics"
	"github.com/xylem-io/xylem/internal/member/restores"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/route"
)

// Config is the configuration that all links share.
type Config struct {
	// HostID is the host's cluster ID.
	HostID string
	// Namespace is the manager's namespace in the host, and the fences' namespace in members.
	Namespace string
	// Identity is the unique holder identity that this process uses for fences.
	Identity string
	// UserAgent is the user agent of all requests to members.
	UserAgent string
	// Scheme contains all kinds that Xylem uses in members.
	Scheme *runtime.Scheme
	// Host writes to the host. HostLive also reads from it, bypassing caches.
	Host, HostLive client.Client
	// Router enqueues requests for the host's watch events. Recorder emits events on host objects.
	Router   *route.Router
	Recorder events.EventRecorder
	// HostSnapshots are the host's snapshots, if the host serves them.
	HostSnapshots *route.Optional
	// AllowInsecure allows kubeconfigs that skip server verification.
	AllowInsecure bool
	// AllowLoopback allows kubeconfigs that point to loopback addresses.
	AllowLoopback bool
	// FenceDuration is how long a fence outlives its holder. ProbeInterval is the interval at which
	// it is renewed, which is less than a third of FenceDuration.
	FenceDuration, ProbeInterval time.Duration
	// EpochInterval is the interval at which a fence advances its epoch within a leadership. A
	// restore is detected if the restored state is older than this interval.
	EpochInterval time.Duration
	// RecheckInterval is the maximum interval between two attempts to connect to a member; see also
	// Link.Recheck.
	RecheckInterval time.Duration
	// Revision is the host's revision, shared by all members.
	Revision *hostrevision.Monitor
	// Limits are the memory limits of each member.
	Limits budget.Limits
	// SyncTimeout bounds the initial sync of a member's caches.
	SyncTimeout time.Duration
	// Leads returns an error that wraps guarded.ErrFenced if this process does not lead. A process
	// that was frozen must not renew a fence that its successor waits for.
	Leads func() error
	// Admit records a member's identity, or rejects it with a Problem.
	Admit func(context.Context, Registration, member.Identity) error
	// Session adds a member's controllers to its link.
	Session func(context.Context, *member.Link) error
	// Log is the logger for the links.
	Log logr.Logger
	// Clock defaults to the real clock.
	Clock clock.Clock
}

// Fleet runs a supervisor for each registered member. The manager runs the fleet only on the
// leader.
type Fleet struct {
	Config
	clock    clock.Clock
	restores *restores.OfHost

	mu          sync.Mutex
	ctx         context.Context //nolint:containedctx // of Start: supervisors live as long
	supervisors map[string]*supervisor
	// removed contains the members whose link has ended because it is no longer needed.
	removed map[string]bool
	changes route.Trigger
	failed  chan error
}

// New creates a fleet without members.
func New(config Config) *Fleet {
	c := config.Clock
	if c == nil {
		c = clock.RealClock{}
	}
	return &Fleet{
		Config: config, clock: c, restores: restores.NewOfHost(),
		supervisors: map[string]*supervisor{}, removed: map[string]bool{},
		failed: make(chan error, 1),
	}
}

// Start runs the supervisors until the context ends, and returns when the last link has ended. If
// it returns an error, the process must restart.
func (f *Fleet) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f.restores.Begin(f.clock.Now())
	f.readHostRestores(ctx)
	f.mu.Lock()
	f.ctx = ctx
	for _, s := range f.supervisors {
		f.launch(s) //nolint:contextcheck // it has the context: f.ctx, just set
	}
	f.mu.Unlock()
	var failure error
	select {
	case <-ctx.Done():
	case failure = <-f.failed:
		cancel()
	}
	f.mu.Lock()
	running := make([]*supervisor, 0, len(f.supervisors))
	for _, s := range f.supervisors {
		running = append(running, s)
	}
	f.mu.Unlock()
	for _, s := range running {
		<-s.done
	}
	return failure
}

// fail makes Start return an error.
func (f *Fleet) fail(err error) {
	select {
	case f.failed <- err:
	default: // Start is already returning
	}
}

// NeedLeaderElection returns true, because only the leader writes to members.
func (f *Fleet) NeedLeaderElection() bool { return true }

func (f *Fleet) launch(s *supervisor) {
	var ctx context.Context
	ctx, s.stop = context.WithCancel(f.ctx)
	go s.run(ctx)
}

// Ensure makes sure that a member is linked. It re-creates the link if the registration has
// changed.
func (f *Fleet) Ensure(r Registration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.removed, r.Registration)
	if s := f.supervisors[r.Registration]; s != nil && !s.ended() {
		s.want(r)
		return
	}
	s := &supervisor{
		fleet: f, name: r.Registration, log: f.Log.WithValues("cluster", r.Registration),
		stop: func() {}, done: make(chan struct{}), changed: make(chan struct{}),
		wanted: r, fences: map[string]*fencing.Fence{},
	}
	f.supervisors[r.Registration] = s
	if f.ctx != nil {
		f.launch(s)
	}
}

// Remove ends a member's link without blocking. It returns true if the link has ended. Otherwise,
// the fleet's source enqueues the registration when the link ends.
func (f *Fleet) Remove(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.supervisors[name]
	if s == nil {
		forget(name) // the ended link's controllers may have re-created series
		f.ended(name)
		return true
	}
	if f.ctx == nil { // Start was not called
		close(s.done)
	}
	s.stop()
	select {
	case <-s.done:
		delete(f.supervisors, name)
		forget(name)
		f.ended(name)
		return true
	default:
		go func() {
			<-s.done
			f.notify(name)
		}()
		return false
	}
}

// ended records that a member has no link, because it is no longer needed.
func (f *Fleet) ended(name string) {
	f.restores.Settle(name)
	if !f.removed[name] {
		f.removed[name] = true
		go f.notify(name)
	}
}

// forget deletes the metric series of a member that is no longer registered.
func forget(name string) {
	metrics.Forget(name)
	results.Forget(name)
}

// ended reports whether a supervisor has ended. Ensure replaces an ended supervisor. If a
// registration is wanted again while its supervisor is ending, the fleet's source enqueues the
// registration afterwards.
func (s *supervisor) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// State returns a member's state, and false if the member has no supervisor.
func (f *Fleet) State(name string) (State, bool) {
	f.mu.Lock()
	s, removed := f.supervisors[name], f.removed[name]
	f.mu.Unlock()
	if s == nil {
		return State{Removed: removed}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state, true
}

// leafPodsMost is the maximum number of Pods that LeafPods returns.
const leafPodsMost = 100

// listTimeout is the maximum duration of a complete list of a member's claims.
const listTimeout = 2 * time.Minute

// errNotLinked means that a member is not linked.
var errNotLinked = errors.New("the member is not connected")

// LeafPods returns the names of up to leafPodsMost Pods that this host created in a member. It
// reads live, and returns an error if the member is not linked.
func (f *Fleet) LeafPods(ctx context.Context, name string) ([]string, error) {
	link, err := f.linkOf(name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	pods := leafList("PodList")
	if err := link.Live.List(ctx, &pods, f.leaves(), client.Limit(leafPodsMost)); err != nil {
		return nil, access.Explain("list Pods", err)
	}
	var names []string
	for i := range pods.Items {
		if _, ours := mirror.OriginIn(f.HostID, &pods.Items[i]); ours {
			names = append(names, pods.Items[i].Namespace+"/"+pods.Items[i].Name)
		}
	}
	return names, nil
}

// LeafClaims returns the origins of all claims that this host created in a member. It reads live, page by
// page, and returns an error if the member is not linked.
func (f *Fleet) LeafClaims(ctx context.Context, name string) ([]mirror.Origin, error) {
	link, err := f.linkOf(name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	claims := leafList("PersistentVolumeClaimList")
	var origins []mirror.Origin
	if err := index.Pages(ctx, link.Live, &claims, func() {
		for i := range claims.Items {
			if origin, ours := mirror.OriginIn(f.HostID, &claims.Items[i]); ours {
				origins = append(origins, origin)
			}
		}
	}, f.leaves()); err != nil {
		return nil, access.Explain("list PersistentVolumeClaims", err)
	}
	return origins, nil
}

// linkOf returns the connection of a linked member.
func (f *Fleet) linkOf(name string) (*member.Connection, error) {
	s := f.supervisorOf(name)
	if s == nil {
		return nil, errNotLinked
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.linked == nil {
		return nil, errNotLinked
	}
	return s.linked, nil
}

// supervisorOf returns the supervisor of a member, or nil.
func (f *Fleet) supervisorOf(name string) *supervisor {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.supervisors[name]
}

func leafList(kind string) metav1.PartialObjectMetadataList {
	list := metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return list
}

// leaves selects the objects that this host created.
func (f *Fleet) leaves() client.ListOption {
	return client.MatchingLabels{v1alpha1.LabelHost: f.HostID}
}

// Source enqueues a request with a registration's name whenever the state of its member
// changes.
func (f *Fleet) Source() source.Source { return f.changes.Source() }

func (f *Fleet) notify(name string) { f.changes.Enqueue(name) }
