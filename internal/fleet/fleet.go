package fleet

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/internal/member/budget"
	"github.com/xylem-io/xylem/internal/member/fencing"
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
	// HostAsNode returns a client that impersonates a node in the host. SecretsAsNode: see Link.
	HostAsNode    func(node string) (client.Client, error)
	SecretsAsNode bool
	// Router enqueues requests for the host's watch events. Recorder emits events on host objects.
	Router   *route.Router
	Recorder events.EventRecorder
	// HostSnapshots are the host's snapshots, if the host serves them.
	HostSnapshots *route.OptionalCache
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
	// Link.RecheckInterval.
	RecheckInterval time.Duration
	// Revision is the host's revision, shared by all members.
	Revision *fencing.RevisionMonitor
	// Limits are the memory limits of each member.
	Limits budget.MemoryLimits
	// SyncTimeout bounds the initial sync of a member's caches.
	SyncTimeout time.Duration
	// CheckLeading returns an error that wraps guarded.ErrFenced if this process does not lead. A process
	// that was frozen must not renew a fence that its successor waits for.
	CheckLeading func() error
	// AdmitMember records a member's identity, or rejects it with a Problem.
	AdmitMember func(context.Context, Registration, member.Identity) error
	// SetupLink adds a member's controllers to its link.
	SetupLink func(context.Context, *member.Link) error
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
	restores *fencing.HostRestores

	mu          sync.Mutex
	ctx         context.Context //nolint:containedctx // of Start: supervisors live as long
	supervisors map[string]*supervisor
	// removedMembers contains the members whose link has ended because it is no longer needed.
	removedMembers map[string]bool
	changes        route.Trigger
	failures       chan error
}

// New creates a fleet without members.
func New(config Config) *Fleet {
	c := config.Clock
	if c == nil {
		c = clock.RealClock{}
	}
	return &Fleet{
		Config: config, clock: c, restores: fencing.NewHostRestores(),
		supervisors: map[string]*supervisor{}, removedMembers: map[string]bool{},
		failures: make(chan error, 1),
	}
}

// Start runs the supervisors until the context ends, and returns when the last link has ended. If
// it returns an error, the process must restart.
func (f *Fleet) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f.restores.BeginLeading(f.clock.Now())
	f.readHostRestores(ctx)
	f.mu.Lock()
	f.ctx = ctx
	for _, s := range f.supervisors {
		f.startSupervisor(s) //nolint:contextcheck // it has the context: f.ctx, just set
	}
	f.mu.Unlock()
	var failure error
	select {
	case <-ctx.Done():
	case failure = <-f.failures:
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

// endWithError makes Start return an error.
func (f *Fleet) endWithError(err error) {
	select {
	case f.failures <- err:
	default: // Start is already returning
	}
}

// NeedLeaderElection returns true, because only the leader writes to members.
func (f *Fleet) NeedLeaderElection() bool { return true }

func (f *Fleet) startSupervisor(s *supervisor) {
	var ctx context.Context
	ctx, s.stop = context.WithCancel(f.ctx)
	go s.keepLinked(ctx)
}

// EnsureLink makes sure that a member is linked. It re-creates the link if the registration has
// changed.
func (f *Fleet) EnsureLink(r Registration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.removedMembers, r.Registration)
	if s := f.supervisors[r.Registration]; s != nil && !s.hasEnded() {
		s.updateRegistration(r)
		return
	}
	s := &supervisor{
		fleet: f, name: r.Registration, log: f.Log.WithValues("cluster", r.Registration),
		stop: func() {}, done: make(chan struct{}), wantedChanged: make(chan struct{}),
		wanted: r, fences: map[string]*fencing.Fence{},
	}
	f.supervisors[r.Registration] = s
	if f.ctx != nil {
		f.startSupervisor(s)
	}
}

// RemoveLink ends a member's link without blocking. It returns true if the link has ended. Otherwise,
// the fleet's source enqueues the registration when the link ends.
func (f *Fleet) RemoveLink(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.supervisors[name]
	if s == nil {
		deleteMemberMetrics(name) // the ended link's controllers may have re-created series
		f.recordLinkEnded(name)
		return true
	}
	if f.ctx == nil { // Start was not called
		close(s.done)
	}
	s.stop()
	select {
	case <-s.done:
		delete(f.supervisors, name)
		deleteMemberMetrics(name)
		f.recordLinkEnded(name)
		return true
	default:
		go func() {
			<-s.done
			f.notifyStateChange(name)
		}()
		return false
	}
}

// recordLinkEnded records that a member has no link, because it is no longer needed.
func (f *Fleet) recordLinkEnded(name string) {
	f.restores.SettleMember(name)
	if !f.removedMembers[name] {
		f.removedMembers[name] = true
		go f.notifyStateChange(name)
	}
}

// deleteMemberMetrics deletes the metric series of a member that is no longer registered.
func deleteMemberMetrics(name string) {
	member.DeleteMetrics(name)
	guarded.DeleteWriteMetrics(name)
}

// hasEnded reports whether a supervisor has ended. Ensure replaces an ended supervisor. If a
// registration is wanted again while its supervisor is ending, the fleet's source enqueues the
// registration afterwards.
func (s *supervisor) hasEnded() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// MemberState returns a member's state, and false if the member has no supervisor.
func (f *Fleet) MemberState(name string) (State, bool) {
	f.mu.Lock()
	s, removed := f.supervisors[name], f.removedMembers[name]
	f.mu.Unlock()
	if s == nil {
		return State{LinkRemoved: removed}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state, true
}

// maxLeafPods is the maximum number of objects of each kind that ListLeafPods and ListLeavesOfPods return.
const maxLeafPods = 100

// listClaimsTimeout is the maximum duration of a complete list of a member's claims.
const listClaimsTimeout = 2 * time.Minute

// errNotLinked means that a member is not linked.
var errNotLinked = errors.New("the member is not connected")

// kindsOfPods are the kinds that Xylem creates in members for Pods, and deletes after the Pods.
var kindsOfPods = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("Service"), discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"),
	policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
	corev1.SchemeGroupVersion.WithKind("ConfigMap"), corev1.SchemeGroupVersion.WithKind("Secret"),
}

// ListLeafPods returns the names of up to maxLeafPods Pods that this host created in a member. It
// reads live, and returns an error if the member is not linked.
func (f *Fleet) ListLeafPods(ctx context.Context, name string) ([]string, error) {
	return f.listLeafNames(ctx, name, corev1.SchemeGroupVersion.WithKind("Pod"))
}

// ListLeavesOfPods is ListLeafPods for the kinds that Xylem deletes after Pods. It returns their kinds and names. If Xylem
// may not list a kind, it returns none of it, because Xylem did not create any then.
func (f *Fleet) ListLeavesOfPods(ctx context.Context, name string) ([]string, error) {
	var all []string
	for _, kind := range kindsOfPods {
		names, err := f.listLeafNames(ctx, name, kind)
		if problem := (*access.ConnectionProblem)(nil); errors.As(err, &problem) && problem.Reason == v1alpha1.ReasonForbidden {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, leaf := range names {
			all = append(all, kind.Kind+" "+leaf)
		}
	}
	return all, nil
}

func (f *Fleet) listLeafNames(ctx context.Context, name string, kind schema.GroupVersionKind) ([]string, error) {
	link, err := f.connectionOf(name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	leaves := newMetadataList(kind)
	if err := link.Live.List(ctx, &leaves, f.matchOwnLeaves(), client.Limit(maxLeafPods)); err != nil {
		return nil, access.ExplainRequestError("list "+kind.Kind+"s", err)
	}
	var names []string
	for i := range leaves.Items {
		if _, ours := mirror.LeafOriginFromHost(f.HostID, &leaves.Items[i]); ours {
			names = append(names, leaves.Items[i].Namespace+"/"+leaves.Items[i].Name)
		}
	}
	return names, nil
}

// ListLeafClaims returns the origins of all claims that this host created in a member. It reads live, page by
// page, and returns an error if the member is not linked.
func (f *Fleet) ListLeafClaims(ctx context.Context, name string) ([]mirror.Origin, error) {
	link, err := f.connectionOf(name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, listClaimsTimeout)
	defer cancel()
	claims := newMetadataList(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"))
	var origins []mirror.Origin
	if err := index.ListPages(ctx, link.Live, &claims, func() {
		for i := range claims.Items {
			if origin, ours := mirror.LeafOriginFromHost(f.HostID, &claims.Items[i]); ours {
				origins = append(origins, origin)
			}
		}
	}, f.matchOwnLeaves()); err != nil {
		return nil, access.ExplainRequestError("list PersistentVolumeClaims", err)
	}
	return origins, nil
}

// connectionOf returns the connection of a linked member.
func (f *Fleet) connectionOf(name string) (*member.Connection, error) {
	s := f.supervisorOf(name)
	if s == nil {
		return nil, errNotLinked
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.connection == nil {
		return nil, errNotLinked
	}
	return s.connection, nil
}

// supervisorOf returns the supervisor of a member, or nil.
func (f *Fleet) supervisorOf(name string) *supervisor {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.supervisors[name]
}

func newMetadataList(kind schema.GroupVersionKind) metav1.PartialObjectMetadataList {
	list := metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}

// matchOwnLeaves selects the objects that this host created.
func (f *Fleet) matchOwnLeaves() client.ListOption {
	return client.MatchingLabels{v1alpha1.LabelHost: f.HostID}
}

// StateChangeSource enqueues a request with a registration's name whenever the state of its member
// changes.
func (f *Fleet) StateChangeSource() source.Source { return f.changes.NamesSource() }

func (f *Fleet) notifyStateChange(name string) { f.changes.Enqueue(name) }
