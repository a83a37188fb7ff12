package member

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

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/placement"
)

const (
	// fencePoll is how often a fence that somebody else holds is looked at.
	fencePoll = 2 * time.Second
	// probeRetry is the pause after a failed probe; the third in a row ends the link.
	probeRetry    = time.Second
	probeFailures = 3
	probeTimeout  = 5 * time.Second
	// overLimitPause is after a member took more memory than it may: what it sent
	// until then is garbage first.
	overLimitPause = time.Minute
)

// Registration is a ClusterRegistration as a supervisor needs it. A link is
// made anew when any of it changes.
type Registration struct {
	// Member without its identity, which the connection finds out.
	mirror.Member
	// Rules of the registration.
	Rules placement.Rules
	// UID of the ClusterRegistration.
	UID types.UID
	// Refused is why the member must not be linked, known beforehand.
	Refused *Problem
	// Kubeconfig as the Secret has it.
	Kubeconfig []byte
	// ConfirmRestore is the value of the annotation of that name.
	ConfirmRestore string
}

// State is what is known of a member at present.
type State struct {
	// Connected: the member answers, is who it was, and its fence is ours.
	Connected bool
	// Synced: its caches are filled and its controllers run.
	Synced bool
	// Problem is why it is not connected, or what an admin has to confirm.
	Problem *Problem
	// Identity as last seen.
	Identity Identity
	// Node is what its nodes add up to, as last seen; nil before.
	Node *NodeFacts
	// MayDestroy is false while destruction is suspended.
	MayDestroy bool
	// TokenExpires is when the token in use expires, zero for other credentials;
	// Renewal how it stands with its renewal, nil if none is asked for.
	TokenExpires time.Time
	Renewal      *TokenRenewal
	// Policy is whether the member's admission policies limit the account, as of the
	// last connection; nil before.
	Policy *PolicyState
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
	linked *connection

	fences map[string]*Fence // by cluster ID; only the supervisor's goroutine
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
		// The link goes on: what it runs with is looked at only here.
		s.linked.bearer.replace(token)
		s.setToken(token)
		return
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// enter notes the connection of the link that begins, or nil when it ends; false if
// its kubeconfig is not the one that is wanted any more.
func (s *supervisor) enter(c *connection, kubeconfig []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.linked = nil
	if c == nil || !bytes.Equal(s.wanted.Kubeconfig, kubeconfig) {
		return false
	}
	s.linked = c
	s.setToken(c.bearer.current())
	return true
}

// setToken notes when the token in use expires; the caller has the lock.
func (s *supervisor) setToken(token string) {
	said, _ := ParseToken(token)
	s.state.TokenExpires = said.Expires
	if said.Expires.IsZero() {
		tokenExpires.DeleteLabelValues(s.name)
	} else {
		tokenExpires.WithLabelValues(s.name).Set(float64(said.Expires.Unix()))
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
			connected.WithLabelValues(s.name).Set(1)
		} else {
			connected.WithLabelValues(s.name).Set(0)
		}
	}
	s.fleet.notify(s.name)
}

// run links the member again and again, until the context ends.
func (s *supervisor) run(ctx context.Context) {
	defer close(s.done)
	connected.WithLabelValues(s.name).Set(0) // a member that is away from the start has the series too
	backoff := newBackoff()
	for ctx.Err() == nil {
		registration, changed := s.current()
		err := s.attempt(ctx, registration, changed, func() { backoff = newBackoff() })
		if ctx.Err() != nil {
			break
		}
		if errors.Is(err, ErrHostRestored) {
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
				pause = overLimitPause
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
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.2, Steps: 6, Cap: lastRetry}
}

// disconnected records why a link ended, or did not come up.
func (s *supervisor) disconnected(err error) *Problem {
	p := &Problem{}
	if !errors.As(err, &p) {
		p = problem(v1alpha1.ReasonUnreachable, "%v", err)
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
			if err := fence.noteHostRestored(ctx); err != nil {
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
	config, err := ParseKubeconfig(r.Kubeconfig, s.fleet.AllowInsecure)
	if err != nil {
		return err
	}
	connection, err := connect(config, s.fleet.UserAgent, s.fleet.Scheme, min(callTimeout, s.fleet.FenceDuration/3), s.fleet.AllowLoopback, s.fleet.Limits, s.fleet.clock)
	if err != nil {
		return err
	}
	defer connection.close()
	identity, err := connection.identify(ctx)
	if err != nil {
		return expired(config.BearerToken, connection.bearer.now(), err)
	}
	s.update(func(state *State) { state.Identity = identity })
	if err := s.fleet.Admit(ctx, r, identity); err != nil {
		return err
	}
	r.ClusterID = identity.ClusterID
	fence := s.fence(ctx, r, connection)
	fenceCtx, stop := context.WithTimeout(ctx, callTimeout)
	defer stop()
	if err := fence.Acquire(fenceCtx, r.ConfirmRestore); err != nil {
		return err
	}
	policy := connection.provePolicy(ctx, s.fleet.HostID)
	s.update(func(state *State) { state.Policy = &policy })
	r.LoosenPodSecurity = connection.mayLoosen(ctx)
	link, err := s.link(ctx, r, connection, fence)
	if err != nil {
		return err
	}
	if !policy.proven() {
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
		if fence.lasting() != nil {
			fence.Drop()
		}
	}()
	return s.session(ctx, link, fence)
}

// fence of a registration in a cluster. Its holder is this process for that very
// registration: of two that lead to one cluster, only one can hold it.
func (s *supervisor) fence(ctx context.Context, r Registration, c *connection) *Fence {
	holder := s.fleet.Identity + "/" + string(r.UID)
	fence := s.fences[r.ClusterID]
	if fence != nil && fence.identity != holder { // deleted and created again
		if err := fence.Release(ctx); err != nil {
			s.log.Info("the fence was not released and will expire", "cause", err.Error())
		}
		fence = nil
	}
	if fence == nil {
		fence = NewFence(FenceOptions{
			Clock: s.fleet.clock, Member: c.live, Host: s.fleet.HostLive, Namespace: s.fleet.Namespace, HostID: s.fleet.HostID,
			ClusterID: r.ClusterID, Identity: holder, Duration: s.fleet.FenceDuration, Revision: s.fleet.Revision,
		})
		s.fences[r.ClusterID] = fence
	}
	fence.member, fence.memberNow = c.live, c.bearer.now
	return fence
}

// link makes a member's caches and clients and lets the session hook add its
// controllers; nothing runs yet.
func (s *supervisor) link(ctx context.Context, r Registration, c *connection, fence *Fence) (*Link, error) {
	held := &held{limiter: c.limiter}
	memberCache, err := newCache(ctx, c, held, s.fleet.Scheme, s.fleet.HostID)
	if err != nil {
		return nil, err
	}
	workloads, err := newWorkloads(ctx, c, held, s.fleet.Scheme, s.fleet.HostID)
	if err != nil {
		return nil, err
	}
	leaf := guarded.NewLeaf(c.live, s.fleet.HostID, r.Registration, fence)
	l := &Link{
		Member: r.Member, Rules: r.Rules, Cache: memberCache, Workloads: workloads, Live: c.live,
		Discovery: discovery.ToDiscoveryInterfaceWithContext(c.discovery), Metadata: c.metadata,
		Host: s.fleet.Host, HostLive: s.fleet.HostLive, Router: s.fleet.Router, Recorder: s.fleet.Recorder,
		Clock: s.fleet.clock,
		Leaf:  leaf,
		Credentials: &Credentials{connection: c, leaf: leaf, clusterID: r.ClusterID, note: func(renewal *TokenRenewal) {
			s.update(func(state *State) { state.Renewal = renewal })
		}},
		Root:       guarded.NewRoot(s.fleet.Host, r.Registration, fence),
		MayDestroy: fence.MayDestroy,
		Restores:   fence.Restores,
		Unrestored: fence.MemberCurrent,
		Note:       fence.Note,
		limiter:    c.limiter,
		log:        s.log,
		publish:    func(facts NodeFacts) { s.update(func(state *State) { state.Node = &facts }) },
	}
	if err := s.fleet.Session(ctx, l); err != nil {
		return nil, fmt.Errorf("set up the controllers of the member: %w", err)
	}
	return l, nil
}

// session runs a link: the probe first, then the caches, and once these are
// filled the controllers. It returns when all of it has.
func (s *supervisor) session(ctx context.Context, l *Link, fence *Fence) error {
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
	must("limits", l.limiter.watch)
	must("cache", l.Cache.Start)
	must("cache of other Pods", l.Workloads.Start)
	group.Go(func() error {
		if err := s.synced(ctx, l); err != nil {
			return err
		}
		for _, c := range l.controllers {
			must("controller", c.Start)
		}
		for _, run := range l.runnables {
			must("runnable", run)
		}
		s.update(func(state *State) { state.Synced = true })
		return nil
	})
	return group.Wait()
}

// synced waits for the caches, within the time that a hostile or slow member is given.
func (s *supervisor) synced(ctx context.Context, l *Link) error {
	syncCtx, cancel := context.WithTimeout(ctx, s.fleet.SyncTimeout)
	defer cancel()
	if !l.Cache.WaitForCacheSync(syncCtx) || !l.Workloads.WaitForCacheSync(syncCtx) {
		if ctx.Err() != nil {
			return nil
		}
		return problem(v1alpha1.ReasonUnreachable, "the member's objects could not be read within %s: is a permission missing? (`kubectl auth can-i --list` in the member, as the manager's user)", s.fleet.SyncTimeout)
	}
	return nil
}

// probe renews the fence at intervals, and now and then takes its next epoch. A
// failure is tried again soon; several in a row, or a fence that is lost, end the
// link.
func (s *supervisor) probe(ctx context.Context, fence *Fence) error {
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
			probeSeconds.WithLabelValues(s.name).Observe(s.fleet.clock.Since(started).Seconds())
			failures, pause = 0, s.fleet.ProbeInterval
			continue
		}
		failures++
		pause = min(probeRetry, s.fleet.ProbeInterval)
		p := &Problem{}
		lost := errors.Is(err, ErrHostRestored) || errors.As(err, &p) && p.Reason != v1alpha1.ReasonUnreachable
		if lost || failures >= probeFailures || fence.Held() != nil {
			return err
		}
	}
}
