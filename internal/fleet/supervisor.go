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

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/fleet/optional"
	"github.com/xylem-io/xylem/internal/fleet/probe"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/guarded/rejection"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/internal/member/budget"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/member/hostrevision"
	"github.com/xylem-io/xylem/internal/member/leafcache"
	"github.com/xylem-io/xylem/internal/member/metrics"
	"github.com/xylem-io/xylem/internal/member/restores"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/placement"
)

const (
	// fencePoll is the interval at which the supervisor tries again to acquire a fence that another
	// process holds.
	fencePoll = 2 * time.Second
	// probeTimeout bounds a probe, and other short calls to a member.
	probeTimeout = 5 * time.Second
)

// Registration contains the fields of a ClusterRegistration that a supervisor needs. Any change
// re-creates the link.
type Registration struct {
	// Member lacks the identity, which the supervisor reads from the cluster.
	mirror.Member
	// Rules are the registration's placement rules.
	Rules placement.Rules
	// UID is the UID of the ClusterRegistration.
	UID types.UID
	// Refused explains why the member must not be linked, if the reason is known before connecting.
	Refused *access.Problem
	// Kubeconfig is the content of the registration's Secret.
	Kubeconfig []byte
	// ConfirmRestore is the value of the confirm-restore annotation.
	ConfirmRestore string
}

// State is the current state of a member.
type State struct {
	// Connected means that the member responds, its identity is unchanged, and this process holds
	// its fence.
	Connected bool
	// Synced means that the caches are synced and the controllers run.
	Synced bool
	// Leaving means that the current or last link was created for a registration that is being
	// deleted. Earlier links have ended.
	Leaving bool
	// Removed means that Remove has ended the link, so the member gets no further leaf objects.
	Removed bool
	// Problem explains why the member is not connected, or what an admin must confirm.
	Problem *access.Problem
	// Failures is the number of attempts to connect that failed in a row, up to lostAfter. Waiting for
	// the fence of an earlier manager does not count. Exceeding a limit counts as lostAfter.
	Failures int
	// Identity is the member's identity as last read.
	Identity member.Identity
	// Node is the last computed sum of the member's nodes, or nil.
	Node *member.NodeFacts
	// MayDestroy is false while destruction is suspended.
	MayDestroy bool
	// LastRestored is when the host or the member was last restored, according to the fence, as of the
	// last connection. It is zero if neither was restored, or before the first connection.
	LastRestored time.Time
	// TokenExpires is when the current token expires, or zero for other credentials. Renewal is the
	// state of the token's renewal, or nil if no renewal is due.
	TokenExpires time.Time
	Renewal      *member.TokenRenewal
	// Policy reports whether the member's admission policies limit Xylem's account, as of the last
	// connection. It is nil before the first one.
	Policy *member.PolicyState
}

// lostAfter is the number of failed attempts after which a member is lost. The causes of one or two
// failures may be a restart, a short interruption, or the host.
const lostAfter = 3

// Lost reports whether the attempts to connect to the member have failed repeatedly. A member is
// neither connected nor lost while a new process, or a new link, still tries to connect.
func (s State) Lost() bool { return !s.Connected && s.Failures >= lostAfter }

// supervisor keeps one member linked.
type supervisor struct {
	fleet *Fleet
	name  string
	log   logr.Logger
	stop  context.CancelFunc
	done  chan struct{}

	mu      sync.Mutex
	wanted  Registration
	changed chan struct{} // closed and replaced when wanted changes
	state   State
	// linked is the current link's connection, or nil. held is the link's fence.
	linked *member.Connection
	held   *fencing.Fence

	fences map[string]*fencing.Fence // by cluster ID; used only by the supervisor's goroutine
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
		// The link continues with the new token. Any other change ends it below.
		s.linked.Bearer.Replace(token)
		s.setToken(token)
		return
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// enter records a link's connection when the link begins, or nil when it ends. It returns false if
// the kubeconfig has changed in the meantime.
func (s *supervisor) enter(c *member.Connection, fence *fencing.Fence, kubeconfig []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.linked, s.held = nil, nil
	if c == nil || !bytes.Equal(s.wanted.Kubeconfig, kubeconfig) {
		return false
	}
	s.linked, s.held = c, fence
	s.setToken(c.Bearer.Current())
	return true
}

// setToken records when the current token expires. The caller holds the lock.
func (s *supervisor) setToken(token string) {
	parsed, _ := access.ParseToken(token)
	s.state.TokenExpires = parsed.Expires
	if parsed.Expires.IsZero() {
		metrics.TokenExpires.DeleteLabelValues(s.name)
	} else {
		metrics.TokenExpires.WithLabelValues(s.name).Set(float64(parsed.Expires.Unix()))
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

// run keeps the member linked until the context ends.
func (s *supervisor) run(ctx context.Context) {
	defer close(s.done)
	metrics.Connected.WithLabelValues(s.name).Set(0) // so the series exists even if the member never connects
	backoff := s.newBackoff()
	for ctx.Err() == nil {
		registration, changed := s.current()
		err := s.attempt(ctx, registration, changed, func() { backoff = s.newBackoff() })
		if ctx.Err() != nil {
			break
		}
		if errors.Is(err, hostrevision.ErrRestored) {
			s.fleet.fail(err)
		}
		pause := backoff.Step()
		select {
		case <-changed:
			backoff, pause = s.newBackoff(), 0
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
			backoff = s.newBackoff()
		case <-s.fleet.clock.After(pause):
		}
	}
	s.release(context.WithoutCancel(ctx))
	s.update(func(state *State) { *state = State{Identity: state.Identity} })
}

func (s *supervisor) newBackoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.2, Steps: 6, Cap: s.fleet.RecheckInterval}
}

// disconnected records why a link ended or could not be created.
func (s *supervisor) disconnected(err error) *access.Problem {
	p := &access.Problem{}
	if !errors.As(err, &p) {
		p = access.Problemf(v1alpha1.ReasonUnreachable, "%v", err)
	}
	s.log.Info("not connected", "reason", p.Reason, "message", p.Message)
	lost := false
	s.update(func(state *State) {
		state.Connected, state.Synced, state.Problem = false, false, p
		switch p.Reason {
		case v1alpha1.ReasonWaitingForFence:
		case v1alpha1.ReasonAnswersRefused: // the next attempt is minutes away
			state.Failures = lostAfter
		default:
			state.Failures = min(state.Failures+1, lostAfter)
		}
		lost = state.Lost()
	})
	if lost {
		s.fleet.restores.Settle(s.name)
	}
	return p
}

// release releases the fences. It is called when the supervisor ends.
func (s *supervisor) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	for _, fence := range s.fences {
		if s.fleet.Revision.Restored() != nil {
			if err := fence.NoteHostRestored(ctx); err != nil {
				s.log.Info("the next manager may not detect that the host was restored", "cause", err.Error())
			}
		} else if err := finish(ctx, fence); err != nil {
			s.log.Info("the fence keeps its epoch, so the next manager may not detect that the host was restored to a very recent state", "cause", err.Error())
		}
		if err := fence.Release(ctx); err != nil {
			s.log.Info("the fence was not released and will expire", "cause", err.Error())
		}
	}
}

// finish takes a fence's last epoch, and leaves enough time to release the fence.
func finish(ctx context.Context, fence *fencing.Fence) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout/2)
	defer cancel()
	return fence.Finish(ctx)
}

// attempt connects once. It returns when the connection has ended and all its users have returned.
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
	err = fence.Acquire(fenceCtx, r.ConfirmRestore)
	s.fleet.restores.Note(fence.Restores().Host) // even if the fence was not acquired
	if err != nil {
		return err
	}
	s.fleet.restores.Settle(s.name)
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
	if !s.enter(connection, fence, r.Kubeconfig) {
		return nil // the kubeconfig has changed in the meantime
	}
	defer s.enter(nil, nil, nil)
	go func() { // a changed registration ends the link
		select {
		case <-changed:
			cancel()
		case <-ctx.Done():
		}
	}()
	defer func() {
		// After a restore of the host, this fence is held but not used. It is released as usual, so
		// that the next manager does not have to wait.
		if fence.Lasting() != nil {
			fence.Drop()
		}
	}()
	return s.session(ctx, link, fence)
}

// fence returns a registration's fence in a cluster. The holder identity contains the
// registration's UID, so only one of two registrations of the same cluster can hold the fence.
func (s *supervisor) fence(ctx context.Context, r Registration, c *member.Connection) *fencing.Fence {
	holder := s.fleet.Identity + "/" + string(r.UID)
	fence := s.fences[r.ClusterID]
	if fence != nil && !fence.HeldBy(holder) { // the registration was re-created
		if err := fence.Release(ctx); err != nil {
			s.log.Info("the fence was not released and will expire", "cause", err.Error())
		}
		fence = nil
	}
	if fence == nil {
		fence = fencing.New(fencing.Options{
			Clock: s.fleet.clock, Member: c.Fence, Host: s.fleet.HostLive, Namespace: s.fleet.Namespace, HostID: s.fleet.HostID,
			ClusterID: r.ClusterID, Identity: holder, Duration: s.fleet.FenceDuration, Revision: s.fleet.Revision,
		})
		s.fences[r.ClusterID] = fence
	}
	fence.Through(c.Fence, c.Bearer.Now)
	return fence
}

// link creates a member's caches and clients, and calls the session hook to add the controllers. It
// does not start them.
func (s *supervisor) link(ctx context.Context, r Registration, c *member.Connection, fence *fencing.Fence) (*member.Link, error) {
	held := &leafcache.Held{Limiter: c.Limiter, Seen: fence.Seen}
	memberCache, err := leafcache.New(ctx, c, held, s.fleet.Scheme, s.fleet.HostID)
	if err != nil {
		return nil, err
	}
	workloads, err := leafcache.NewWorkloads(ctx, c, held, s.fleet.Scheme, s.fleet.HostID)
	if err != nil {
		return nil, err
	}
	writes := rejection.OfMember(c.Live, s.fleet.HostID, r.Registration, s.fleet.Host, s.fleet.Recorder, s.fleet.clock, rejection.Patience(s.fleet.FenceDuration))
	leaf := guarded.NewLeaf(writes, s.fleet.HostID, r.Registration, fence)
	l := &member.Link{
		Member: r.Member, Rules: r.Rules, Cache: memberCache, Workloads: workloads, Live: c.Live,
		Discovery: discovery.ToDiscoveryInterfaceWithContext(c.Discovery), Metadata: c.Metadata,
		Host: s.fleet.Host, HostLive: s.fleet.HostLive, Router: s.fleet.Router, Recorder: s.fleet.Recorder,
		Clock: s.fleet.clock, Recheck: s.fleet.RecheckInterval, Streams: c.Streams,
		Leaf: leaf,
		Credentials: &member.Credentials{Connection: c, Leaf: leaf, ClusterID: r.ClusterID, Note: func(renewal *member.TokenRenewal) {
			s.update(func(state *State) { state.Renewal = renewal })
		}},
		Root:       guarded.NewRoot(s.fleet.Host, r.Registration, fence),
		MayDestroy: fence.MayDestroy,
		Restores:   func() restores.Times { return s.fleet.restores.With(fence.Restores(), s.fleet.clock.Now()) },
		Unrestored: fence.MemberCurrent,
		Note:       fence.Note,
		Snapshots:  member.NewOptional(), HostSnapshots: s.fleet.HostSnapshots,
		Attachments: member.NewOptional(),
		Limiter:     c.Limiter,
		Log:         s.log,
		PublishTo:   func(facts member.NodeFacts) { s.update(func(state *State) { state.Node = &facts }) },
	}
	if err := s.fleet.Session(ctx, l); err != nil {
		return nil, fmt.Errorf("set up the member's controllers: %w", err)
	}
	kinds := optional.Reader{Link: l, Connection: c, Held: held, Scheme: s.fleet.Scheme, Clock: s.fleet.clock, Recheck: s.fleet.RecheckInterval}
	if l.HostSnapshots != nil {
		l.Run(kinds.Snapshots)
	}
	l.Run(kinds.Attachments)
	return l, nil
}

// session runs a link: the probe and the caches and, once the caches are synced, the controllers.
// It returns when all of them have returned.
func (s *supervisor) session(ctx context.Context, l *member.Link, fence *fencing.Fence) error {
	s.log.Info("connected", "clusterID", l.ClusterID, "node", l.NodeName)
	s.update(func(state *State) {
		state.Connected, state.Synced, state.Problem = true, false, fence.Suspended()
		state.MayDestroy, state.Leaving = fence.MayDestroy() == nil, l.Leaving
		state.LastRestored = fence.Restores().Last()
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
	must("probe", probe.Probe{
		Fence: fence, Clock: s.fleet.clock, Interval: s.fleet.ProbeInterval, EpochInterval: s.fleet.EpochInterval,
		Timeout: min(probeTimeout, s.fleet.FenceDuration/3), Leads: s.fleet.Leads, Registration: s.name,
	}.Run)
	must("limits", l.Limiter.Watch)
	must("cache", l.Cache.Start)
	must("cache for other Pods", l.Workloads.Start)
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
		s.update(func(state *State) { state.Synced, state.Failures = true, 0 })
		return nil
	})
	return group.Wait()
}

// synced waits until the caches are synced, but no longer than SyncTimeout.
func (s *supervisor) synced(ctx context.Context, l *member.Link) error {
	syncCtx, cancel := context.WithTimeout(ctx, s.fleet.SyncTimeout)
	defer cancel()
	if !l.Cache.WaitForCacheSync(syncCtx) || !l.Workloads.WaitForCacheSync(syncCtx) {
		if ctx.Err() != nil {
			return nil
		}
		return access.Problemf(v1alpha1.ReasonUnreachable, "Xylem could not list the member's objects within %s. Check the account's permissions with `kubectl auth can-i --list` in the member, as the manager's user", s.fleet.SyncTimeout)
	}
	return nil
}

// renewed returns the new token if the registration's only change is another token of the same
// ServiceAccount. The link then continues.
func (r Registration) renewed(was Registration) (string, bool) {
	then, now := was.Kubeconfig, r.Kubeconfig
	was.Kubeconfig, r.Kubeconfig = nil, nil
	if !reflect.DeepEqual(was, r) {
		return "", false
	}
	return access.Renewed(then, now)
}

// expired replaces an Unauthorized Problem if the token has expired, and returns other errors
// unchanged.
func expired(kubeconfigToken string, now time.Time, err error) error {
	token, ok := access.ParseToken(kubeconfigToken)
	if p := access.AsProblem(err); !ok || p == nil || p.Reason != v1alpha1.ReasonUnauthorized || now.Before(token.Expires) {
		return err
	}
	return access.Problemf(v1alpha1.ReasonUnauthorized,
		access.Unauthorized+": the token in the kubeconfig expired at %s. Run `kubectl xylem register` for this registration again, or put a kubeconfig with a valid token into its Secret", "the member", token.Expires.UTC().Format(time.RFC3339))
}

// errEnded ends a link if one of its parts returns without an error.
var errEnded = errors.New("a part of the link ended early")

// provePolicyAgain repeats a failed proof with backoff, for about a minute. It returns when its
// context ends. API servers enforce a policy only some seconds after its creation, and `kubectl
// xylem register` creates the policy just before the member is linked.
func (s *supervisor) provePolicyAgain(ctx context.Context, c *member.Connection) error {
	backoff := s.newBackoff()
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
