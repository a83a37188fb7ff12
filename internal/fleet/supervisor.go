package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/internal/member/budget"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/member/hostrevision"
	"github.com/xylem-io/xylem/internal/member/leafcache"
	"github.com/xylem-io/xylem/internal/member/metrics"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/placement"
)

const ( // fencePoll is how often a fence that somebody else holds is examined.
	fencePoll     = 2 * time.Second // probeRetry is the pause after a failed probe; the third in a row ends the link.
	probeRetry    = time.Second
	probeFailures = 3
	probeTimeout  = 5 * time.Second
)

// Registration is a ClusterRegistration as a supervisor needs it. A link is
// re-created when any of it changes.
type Registration struct {
	// Member without its identity, which the connection finds out.
	mirror.Member
	// Rules of the registration.
	Rules placement.Rules
	// UID of the ClusterRegistration.
	UID types.UID
	// Refused is why the member must not be linked, known beforehand.
	Refused *access.Problem
	// Kubeconfig as the Secret has it.
	Kubeconfig []byte
	// ConfirmRestore is the value of the annotation of that name.
	ConfirmRestore string
}

// State is what is known of a member at present.
type State struct {
	// Connected: the member answers, is who it was, and its fence is Xylem's.
	Connected bool
	// Synced: its caches are filled and its controllers run.
	Synced bool
	// Problem is why it is not connected, or what an admin has to confirm.
	Problem *access.Problem
	// Identity as last seen.
	Identity member.Identity
	// Node is what its nodes add up to, as last seen; nil before.
	Node *member.NodeFacts
	// MayDestroy is false while destruction is suspended.
	MayDestroy bool
	// TokenExpires is when the token in use expires, zero for other credentials;
	// Renewal how it stands with its renewal, nil if none is requested.
	TokenExpires time.Time
	Renewal      *member.TokenRenewal
	// Policy is whether the member's admission policies limit the account, as of the
	// last connection; nil before.
	Policy *member.PolicyState
}

// supervisor keeps one member linked.
type supervisor struct {
	fleet *Fleet
	name  string
	log   logr.Logger
	stop  context.CancelFunc
	done  chan struct{}

	mu      sync.Mutex
	wanted  Registration
	changed chan struct{} // closed when wanted changes
	state   State
	// linked is the connection of the present link, nil if there is none.
	linked *member.Connection

	fences map[string]*fencing.Fence // by cluster ID; only the supervisor's goroutine
}

func (s *supervisor) want(r Registration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reflect.DeepEqual(s.wanted, r) {
		return
	}
	token, renewed := r.renewed(s.wanted)
	s.wanted = r
	if renewed && s.linked != nil {
		// The link continues: what it runs with is examined only here.
		s.linked.Bearer.Replace(token)
		s.setToken(token)
		return
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// enter notes the connection of the link that begins, or nil when it ends; false if
// its kubeconfig is not the one that is wanted any more.
func (s *supervisor) enter(c *member.Connection, kubeconfig []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.linked = nil
	if c == nil || !bytes.Equal(s.wanted.Kubeconfig, kubeconfig) {
		return false
	}
	s.linked = c
	s.setToken(c.Bearer.Current())
	return true
}

// setToken notes when the token in use expires; the caller has the lock.
func (s *supervisor) setToken(token string) {
	said, _ := access.ParseToken(token)
	s.state.TokenExpires = said.Expires
	if said.Expires.IsZero() {
		metrics.TokenExpires.DeleteLabelValues(s.name)
	} else {
		metrics.TokenExpires.WithLabelValues(s.name).Set(float64(said.Expires.Unix()))
	}
	s.fleet.notify(s.name)
}

func (s *supervisor) current() (Registration, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wanted, s.changed
}

func (s *supervisor) update(change func(*State)) {
	s.mu.Lock()
	before := s.state
	change(&s.state)
	after := s.state
	s.mu.Unlock()
	if reflect.DeepEqual(before, after) {
		return
	}
	if before.Connected != after.Connected {
		if after.Connected {
			metrics.Connected.WithLabelValues(s.name).Set(1)
		} else {
			metrics.Connected.WithLabelValues(s.name).Set(0)
		}
	}
	s.fleet.notify(s.name)
}

// run links the member again and again, until the context ends.
func (s *supervisor) run(ctx context.Context) {
	defer close(s.done)
	metrics.Connected.WithLabelValues(s.name).Set(0) // a member that is away from the start has the series too
	backoff := newBackoff()
	for ctx.Err() == nil {
		registration, changed := s.current()
		err := s.attempt(ctx, registration, changed, func() { backoff = newBackoff() })
		if ctx.Err() != nil {
			break
		}
		if errors.Is(err, hostrevision.ErrRestored) {
			s.fleet.fail(err)
		}
		pause := backoff.Step()
		select {
		case <-changed:
			backoff, pause = newBackoff(), 0
		default:
			p := s.disconnected(err)
			switch p.Reason {
			case v1alpha1.ReasonWaitingForFence, v1alpha1.ReasonHostCloned:
				pause = fencePoll
			case v1alpha1.ReasonAnswersRefused:
				pause = budget.OverLimitPause
			}
		}
		select {
		case <-ctx.Done():
		case <-changed:
			backoff = newBackoff()
		case <-s.fleet.clock.After(pause):
		}
	}
	s.release(context.WithoutCancel(ctx))
	s.update(func(state *State) { *state = State{Identity: state.Identity} })
}

func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.2, Steps: 6, Cap: member.LastRetry}
}

// disconnected records why a link ended, or did not come up.
func (s *supervisor) disconnected(err error) *access.Problem {
	p := &access.Problem{}
	if !errors.As(err, &p) {
		p = access.Problemf(v1alpha1.ReasonUnreachable, "%v", err)
	}
	s.log.Info("not connected", "reason", p.Reason, "message", p.Message)
	s.update(func(state *State) {
		state.Connected, state.Synced, state.Problem = false, false, p
	})
	return p
}

// release gives the fences back when the supervisor ends in order.
func (s *supervisor) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	for _, fence := range s.fences {
		if s.fleet.Revision.Restored() != nil {
			if err := fence.NoteHostRestored(ctx); err != nil {
				s.log.Info("the next manager may not know that the host was restored", "cause", err.Error())
			}
		}
		if err := fence.Release(ctx); err != nil {
			s.log.Info("the fence was not released and will run out by itself", "cause", err.Error())
		}
	}
}

// attempt connects once and returns when that connection, if it came up, has
// ended and everything that it ran has returned.
func (s *supervisor) attempt(ctx context.Context, r Registration, changed <-chan struct{}, linked func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if r.Refused != nil {
		return r.Refused
	}
	if err := s.fleet.Leads(); err != nil {
		return err
	}
	config, err := access.ParseKubeconfig(r.Kubeconfig, s.fleet.AllowInsecure)
	if err != nil {
		return err
	}
	connection, err := member.Connect(config, s.fleet.UserAgent, s.fleet.Scheme, min(member.CallTimeout, s.fleet.FenceDuration/3), s.fleet.AllowLoopback, s.fleet.Limits, s.fleet.clock)
	if err != nil {
		return err
	}
	defer connection.Close()
	identity, err := connection.Identify(ctx)
	if err != nil {
		return expired(config.BearerToken, connection.Bearer.Now(), err)
	}
	s.update(func(state *State) { state.Identity = identity })
	if err := s.fleet.Admit(ctx, r, identity); err != nil {
		return err
	}
	r.ClusterID = identity.ClusterID
	fence := s.fence(ctx, r, connection)
	fenceCtx, stop := context.WithTimeout(ctx, member.CallTimeout)
	defer stop()
	if err := fence.Acquire(fenceCtx, r.ConfirmRestore); err != nil {
		return err
	}
	policy := connection.ProvePolicy(ctx, s.fleet.HostID)
	s.update(func(state *State) { state.Policy = &policy })
	r.LoosenPodSecurity = connection.MayLoosen(ctx)
	link, err := s.link(ctx, r, connection, fence)
	if err != nil {
		return err
	}
	if !policy.Proven() {
		link.Run(func(ctx context.Context) error { return s.provePolicyAgain(ctx, connection) })
	}
	linked()
	if !s.enter(connection, r.Kubeconfig) {
		return nil // changed meanwhile
	}
	defer s.enter(nil, nil)
	go func() { // a changed registration ends the link
		select {
		case <-changed:
			cancel()
		case <-ctx.Done():
		}
	}()
	defer func() {
		// After a restore of the host it writes nothing more, and is released in order: the
		// next manager need not wait.
		if fence.Lasting() != nil {
			fence.Drop()
		}
	}()
	return s.session(ctx, link, fence)
}

// fence of a registration in a cluster. Its holder is this process for that very
// registration: of two that lead to one cluster, only one can hold it.
func (s *supervisor) fence(ctx context.Context, r Registration, c *member.Connection) *fencing.Fence {
	holder := s.fleet.Identity + "/" + string(r.UID)
	fence := s.fences[r.ClusterID]
	if fence != nil && !fence.HeldBy(holder) { // deleted and created again
		if err := fence.Release(ctx); err != nil {
			s.log.Info("the fence was not released and will expire", "cause", err.Error())
		}
		fence = nil
	}
	if fence == nil {
		fence = fencing.New(fencing.Options{
			Clock: s.fleet.clock, Member: c.Live, Host: s.fleet.HostLive, Namespace: s.fleet.Namespace, HostID: s.fleet.HostID,
			ClusterID: r.ClusterID, Identity: holder, Duration: s.fleet.FenceDuration, Revision: s.fleet.Revision,
		})
		s.fences[r.ClusterID] = fence
	}
	fence.Through(c.Live, c.Bearer.Now)
	return fence
}

// link makes a member's caches and clients and lets the session hook add its
// controllers; nothing runs yet.
func (s *supervisor) link(ctx context.Context, r Registration, c *member.Connection, fence *fencing.Fence) (*member.Link, error) {
	held := &leafcache.Held{Limiter: c.Limiter}
	memberCache, err := leafcache.New(ctx, c, held, s.fleet.Scheme, s.fleet.HostID)
	if err != nil {
		return nil, err
	}
	workloads, err := leafcache.NewWorkloads(ctx, c, held, s.fleet.Scheme, s.fleet.HostID)
	if err != nil {
		return nil, err
	}
	leaf := guarded.NewLeaf(c.Live, s.fleet.HostID, r.Registration, fence)
	l := &member.Link{
		Member: r.Member, Rules: r.Rules, Cache: memberCache, Workloads: workloads, Live: c.Live,
		Discovery: discovery.ToDiscoveryInterfaceWithContext(c.Discovery), Metadata: c.Metadata,
		Host: s.fleet.Host, HostLive: s.fleet.HostLive, Router: s.fleet.Router, Recorder: s.fleet.Recorder,
		Clock: s.fleet.clock, Streams: c.Streams,
		Leaf: leaf,
		Credentials: &member.Credentials{Connection: c, Leaf: leaf, ClusterID: r.ClusterID, Note: func(renewal *member.TokenRenewal) {
			s.update(func(state *State) { state.Renewal = renewal })
		}},
		Root:       guarded.NewRoot(s.fleet.Host, r.Registration, fence),
		MayDestroy: fence.MayDestroy,
		Restores:   fence.Restores,
		Unrestored: fence.MemberCurrent,
		Note:       fence.Note,
		Snapshots:  member.NewSnapshots(), HostSnapshots: s.fleet.HostSnapshots,
		Limiter:   c.Limiter,
		Log:       s.log,
		PublishTo: func(facts member.NodeFacts) { s.update(func(state *State) { state.Node = &facts }) },
	}
	if err := s.fleet.Session(ctx, l); err != nil {
		return nil, fmt.Errorf("set up the controllers of the member: %w", err)
	}
	if l.HostSnapshots != nil {
		l.Run(func(ctx context.Context) error { return s.snapshots(ctx, l, c, held) })
	}
	return l, nil
}

// session runs a link: the probe first, then the caches, and once these are
// filled the controllers. It returns when all of it has.
func (s *supervisor) session(ctx context.Context, l *member.Link, fence *fencing.Fence) error {
	s.log.Info("connected", "clusterID", l.ClusterID, "node", l.NodeName)
	s.update(func(state *State) {
		state.Connected, state.Synced, state.Problem = true, false, fence.Suspended()
		state.MayDestroy = fence.MayDestroy() == nil
	})
	group, ctx := errgroup.WithContext(ctx)
	must := func(what string, run func(context.Context) error) {
		group.Go(func() error {
			if err := run(ctx); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			if ctx.Err() == nil {
				return fmt.Errorf("%s: %w", what, errEnded)
			}
			return nil
		})
	}
	must("probe", func(ctx context.Context) error { return s.probe(ctx, fence) })
	must("limits", l.Limiter.Watch)
	must("cache", l.Cache.Start)
	must("cache of other Pods", l.Workloads.Start)
	group.Go(func() error {
		if err := s.synced(ctx, l); err != nil {
			return err
		}
		for _, c := range l.Controllers() {
			must("controller", c.Start)
		}
		for _, run := range l.Runnables {
			must("runnable", run)
		}
		s.update(func(state *State) { state.Synced = true })
		return nil
	})
	return group.Wait()
}

// synced waits for the caches, within the time that a hostile or slow member is given.
func (s *supervisor) synced(ctx context.Context, l *member.Link) error {
	syncCtx, cancel := context.WithTimeout(ctx, s.fleet.SyncTimeout)
	defer cancel()
	if !l.Cache.WaitForCacheSync(syncCtx) || !l.Workloads.WaitForCacheSync(syncCtx) {
		if ctx.Err() != nil {
			return nil
		}
		return access.Problemf(v1alpha1.ReasonUnreachable, "Xylem could not list the member's objects within %s. Check the account's permissions: `kubectl auth can-i --list` in the member, as the manager's user", s.fleet.SyncTimeout)
	}
	return nil
}

// probe renews the fence at intervals, and now and then takes its next epoch. A
// failure is tried again soon; several in a row, or a fence that is lost, end the
// link.
func (s *supervisor) probe(ctx context.Context, fence *fencing.Fence) error {
	failures := 0
	pause := s.fleet.ProbeInterval
	advanced := s.fleet.clock.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.fleet.clock.After(pause):
		}
		if err := s.fleet.Leads(); err != nil {
			return err
		}
		started := s.fleet.clock.Now()
		probeCtx, cancel := context.WithTimeout(ctx, min(probeTimeout, s.fleet.FenceDuration/3))
		err := fence.Renew(probeCtx)
		if err == nil && started.Sub(advanced) >= s.fleet.EpochInterval {
			if err = fence.Advance(probeCtx); err == nil {
				advanced = started
			}
		}
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			metrics.ProbeSeconds.WithLabelValues(s.name).Observe(s.fleet.clock.Since(started).Seconds())
			failures, pause = 0, s.fleet.ProbeInterval
			continue
		}
		failures++
		pause = min(probeRetry, s.fleet.ProbeInterval)
		p := &access.Problem{}
		lost := errors.Is(err, hostrevision.ErrRestored) || errors.As(err, &p) && p.Reason != v1alpha1.ReasonUnreachable
		if lost || failures >= probeFailures || fence.Held() != nil {
			return err
		}
	}
}

// renewed is the token of a registration that differs from another one in that
// alone, another token of the same service account: a link continues with it.
func (r Registration) renewed(was Registration) (string, bool) {
	then, now := was.Kubeconfig, r.Kubeconfig
	was.Kubeconfig, r.Kubeconfig = nil, nil
	if !reflect.DeepEqual(was, r) {
		return "", false
	}
	before, err := access.ParseKubeconfig(then, true)
	if err != nil {
		return "", false
	}
	after, err := access.ParseKubeconfig(now, true)
	if err != nil {
		return "", false
	}
	old, ok := access.ParseToken(before.BearerToken)
	renewed, is := access.ParseToken(after.BearerToken)
	if !ok || !is || !old.Same(renewed) {
		return "", false
	}
	return after.BearerToken, reflect.DeepEqual(wayOf(before), wayOf(after))
}

// wayOf is what access.ParseKubeconfig sets of a configuration, the token excepted.
func wayOf(c *rest.Config) any {
	return struct {
		host string
		tls  rest.TLSClientConfig
	}{c.Host, c.TLSClientConfig}
}

// expired reports that a member may have refused a token because it was too old.
func expired(kubeconfigToken string, now time.Time, err error) error {
	token, ok := access.ParseToken(kubeconfigToken)
	if p := access.AsProblem(err); !ok || p == nil || p.Reason != v1alpha1.ReasonUnauthorized || now.Before(token.Expires) {
		return err
	}
	return access.Problemf(v1alpha1.ReasonUnauthorized,
		"the member rejects the credentials: their token expired at %s. Run `kubectl xylem register` for this registration again, or put a kubeconfig with a valid token into its Secret", token.Expires.UTC().Format(time.RFC3339))
}

// errEnded ends a link whose parts returned although nothing was wrong.
var errEnded = errors.New("a part of the link ended early")

// provePolicyAgain repeats a proof that failed, with a growing pause, for about a minute:
// API servers enforce a policy only some seconds after it was created, and register links
// the member at once. It returns when its context ends.
func (s *supervisor) provePolicyAgain(ctx context.Context, c *member.Connection) error {
	backoff := newBackoff()
	for proven := false; !proven && backoff.Steps > 0; {
		select {
		case <-ctx.Done():
			return nil
		case <-s.fleet.clock.After(backoff.Step()):
		}
		policy := c.ProvePolicy(ctx, s.fleet.HostID)
		if ctx.Err() != nil {
			return nil
		}
		s.update(func(state *State) { state.Policy = &policy })
		proven = policy.Proven()
	}
	<-ctx.Done()
	return nil
}
