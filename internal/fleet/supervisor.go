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
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/internal/member/budget"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/member/leafcache"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/placement"
)

const (
	// fencePollInterval is the interval at which the supervisor tries again to acquire a fence that another
	// process holds.
	fencePollInterval = 2 * time.Second
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
	// LinkProblem explains why the member must not be linked, if the reason is known before connecting.
	LinkProblem *access.ConnectionProblem
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
	// LinkRemoved means that RemoveLink has ended the link, so the member gets no further leaf objects.
	LinkRemoved bool
	// Problem explains why the member is not connected, or what an admin must confirm.
	Problem *access.ConnectionProblem
	// ConsecutiveFailures is the number of attempts to connect that failed in a row, up to repeatedFailures. Waiting for
	// the fence of an earlier manager does not count. Exceeding a limit counts as repeatedFailures.
	ConsecutiveFailures int
	// Identity is the member's identity as last read.
	Identity member.Identity
	// NodeSummary is the last computed sum of the member's nodes, or nil.
	NodeSummary *member.NodeSummary
	// DestructionAllowed is false while destruction is suspended.
	DestructionAllowed bool
	// LastRestored is when the host or the member was last restored, according to the fence, as of the
	// last connection. It is zero if neither was restored, or before the first connection.
	LastRestored time.Time
	// TokenExpires is when the current token expires, or zero for other credentials. Renewal is the
	// state of the token's renewal, or nil if no renewal is due.
	TokenExpires time.Time
	TokenRenewal *member.TokenRenewal
	// ServicesProblem explains why Xylem may not create Services in the member although the registration asks for
	// them. It is nil if it may, or if this is not known yet.
	ServicesProblem *mirror.Refusal
	// PolicyState reports whether the member's admission policies limit Xylem's account, as of the last
	// connection. It is nil before the first one.
	PolicyState *member.PolicyState
	// BudgetsProblem explains why Xylem may not create PodDisruptionBudgets in the member. It is nil if it may, or if
	// this is not known yet.
	BudgetsProblem *mirror.Refusal
}

// repeatedFailures is the number of failed attempts after which a member is lost. The causes of one or two
// failures may be a restart, a short interruption, or the host.
const repeatedFailures = 3

// HasFailedRepeatedly reports whether the attempts to connect to the member have failed repeatedly. A member is
// neither connected nor lost while a new process, or a new link, still tries to connect.
func (s State) HasFailedRepeatedly() bool {
	return !s.Connected && s.ConsecutiveFailures >= repeatedFailures
}

// supervisor keeps one member linked.
type supervisor struct {
	fleet *Fleet
	name  string
	log   logr.Logger
	stop  context.CancelFunc
	done  chan struct{}

	mu            sync.Mutex
	wanted        Registration
	wantedChanged chan struct{} // closed and replaced when wanted changes
	state         State
	// connection is the current link's connection, or nil. held is the link's fence.
	connection *member.Connection
	linkFence  *fencing.Fence

	fences map[string]*fencing.Fence // by cluster ID; used only by the supervisor's goroutine
}

func (s *supervisor) updateRegistration(r Registration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reflect.DeepEqual(s.wanted, r) {
		return
	}
	token, renewed := r.renewedToken(s.wanted)
	s.wanted = r
	if renewed && s.connection != nil {
		// The link continues with the new token. Any other change ends it below.
		s.connection.Bearer.ReplaceToken(token)
		s.recordTokenExpiry(token)
		return
	}
	close(s.wantedChanged)
	s.wantedChanged = make(chan struct{})
}

// recordConnection records a link's connection when the link begins, or nil when it ends. It returns false if
// the kubeconfig has changed in the meantime.
func (s *supervisor) recordConnection(c *member.Connection, fence *fencing.Fence, kubeconfig []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connection, s.linkFence = nil, nil
	if c == nil || !bytes.Equal(s.wanted.Kubeconfig, kubeconfig) {
		return false
	}
	s.connection, s.linkFence = c, fence
	s.recordTokenExpiry(c.Bearer.CurrentToken())
	return true
}

// recordTokenExpiry records when the current token expires. The caller holds the lock.
func (s *supervisor) recordTokenExpiry(token string) {
	parsed, _ := access.ParseAccountToken(token)
	s.state.TokenExpires = parsed.Expires
	if parsed.Expires.IsZero() {
		member.TokenExpiry.DeleteLabelValues(s.name)
	} else {
		member.TokenExpiry.WithLabelValues(s.name).Set(float64(parsed.Expires.Unix()))
	}
	s.fleet.notifyStateChange(s.name)
}

func (s *supervisor) currentRegistration() (Registration, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wanted, s.wantedChanged
}

func (s *supervisor) updateState(change func(*State)) {
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
			member.ConnectedGauge.WithLabelValues(s.name).Set(1)
		} else {
			member.ConnectedGauge.WithLabelValues(s.name).Set(0)
		}
	}
	s.fleet.notifyStateChange(s.name)
}

// keepLinked keeps the member linked until the context ends.
func (s *supervisor) keepLinked(ctx context.Context) {
	defer close(s.done)
	member.ConnectedGauge.WithLabelValues(s.name).Set(0) // so the series exists even if the member never connects
	backoff := s.newConnectBackoff()
	for ctx.Err() == nil {
		registration, changed := s.currentRegistration()
		err := s.connectOnce(ctx, registration, changed, func() { backoff = s.newConnectBackoff() })
		if ctx.Err() != nil {
			break
		}
		if errors.Is(err, fencing.ErrHostRestored) {
			s.fleet.endWithError(err)
		}
		pause := backoff.Step()
		select {
		case <-changed:
			backoff, pause = s.newConnectBackoff(), 0
		default:
			p := s.recordDisconnect(err)
			switch p.Reason {
			case v1alpha1.ReasonWaitingForFence, v1alpha1.ReasonHostCloned:
				pause = fencePollInterval
			case v1alpha1.ReasonAnswersRefused:
				pause = budget.OverLimitPause
			}
		}
		select {
		case <-ctx.Done():
		case <-changed:
			backoff = s.newConnectBackoff()
		case <-s.fleet.clock.After(pause):
		}
	}
	s.releaseFences(context.WithoutCancel(ctx))
	s.updateState(func(state *State) { *state = State{Identity: state.Identity} })
}

func (s *supervisor) newConnectBackoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.2, Steps: 6, Cap: s.fleet.RecheckInterval}
}

// recordDisconnect records why a link ended or could not be created.
func (s *supervisor) recordDisconnect(err error) *access.ConnectionProblem {
	p := &access.ConnectionProblem{}
	if !errors.As(err, &p) {
		p = access.ConnectionProblemf(v1alpha1.ReasonUnreachable, "%v", err)
	}
	s.log.Info("not connected", "reason", p.Reason, "message", p.Message)
	lost := false
	s.updateState(func(state *State) {
		state.Connected, state.Synced, state.Problem = false, false, p
		switch p.Reason {
		case v1alpha1.ReasonWaitingForFence:
		case v1alpha1.ReasonAnswersRefused: // the next attempt is minutes away
			state.ConsecutiveFailures = repeatedFailures
		default:
			state.ConsecutiveFailures = min(state.ConsecutiveFailures+1, repeatedFailures)
		}
		lost = state.HasFailedRepeatedly()
	})
	if lost {
		s.fleet.restores.SettleMember(s.name)
	}
	return p
}

// releaseFences releases the fences. It is called when the supervisor ends.
func (s *supervisor) releaseFences(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	for _, fence := range s.fences {
		if s.fleet.Revision.RestoreError() != nil {
			if err := fence.RecordHostRestore(ctx); err != nil {
				s.log.Info("the next manager may not detect that the host was restored", "cause", err.Error())
			}
		} else if err := takeFinalEpoch(ctx, fence); err != nil {
			s.log.Info("the fence keeps its epoch, so the next manager may not detect that the host was restored to a very recent state", "cause", err.Error())
		}
		if err := fence.ReleaseLease(ctx); err != nil {
			s.log.Info("the fence was not released and will expire", "cause", err.Error())
		}
	}
}

// takeFinalEpoch takes a fence's last epoch, and leaves enough time to release the fence.
func takeFinalEpoch(ctx context.Context, fence *fencing.Fence) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout/2)
	defer cancel()
	return fence.TakeFinalEpoch(ctx)
}

// connectOnce connects once. It returns when the connection has ended and all its users have returned.
func (s *supervisor) connectOnce(ctx context.Context, r Registration, changed <-chan struct{}, linked func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if r.LinkProblem != nil {
		return r.LinkProblem
	}
	if err := s.fleet.CheckLeading(); err != nil {
		return err
	}
	config, err := access.ParseKubeconfig(r.Kubeconfig, s.fleet.AllowInsecure)
	if err != nil {
		return err
	}
	connection, err := member.NewConnection(config, s.fleet.UserAgent, s.fleet.Scheme, min(member.CallTimeout, s.fleet.FenceDuration/3), s.fleet.AllowLoopback, s.fleet.Limits, s.fleet.clock)
	if err != nil {
		return err
	}
	defer connection.Close()
	identity, err := connection.ReadIdentity(ctx)
	if err != nil {
		return explainExpiredToken(config.BearerToken, connection.Bearer.Now(), err)
	}
	s.updateState(func(state *State) { state.Identity = identity })
	if err := s.fleet.AdmitMember(ctx, r, identity); err != nil {
		return err
	}
	r.ClusterID = identity.ClusterID
	fence := s.fenceFor(ctx, r, connection)
	fenceCtx, stop := context.WithTimeout(ctx, member.CallTimeout)
	defer stop()
	err = fence.AcquireLease(fenceCtx, r.ConfirmRestore)
	s.fleet.restores.RecordRestore(fence.DetectedRestores().Host) // even if the fence was not acquired
	if err != nil {
		return err
	}
	s.fleet.restores.SettleMember(s.name)
	policy := connection.ProbePolicyEnforced(ctx, s.fleet.HostID)
	s.updateState(func(state *State) { state.PolicyState = &policy })
	r.LoosenPodSecurity = connection.MayLoosenPodSecurity(ctx)
	link, err := s.buildLink(ctx, r, connection, fence)
	if err != nil {
		return err
	}
	if !policy.IsEnforced() {
		link.AddRunnable(func(ctx context.Context) error { return s.retryPolicyProbe(ctx, connection) })
	}
	linked()
	if !s.recordConnection(connection, fence, r.Kubeconfig) {
		return nil // the kubeconfig has changed in the meantime
	}
	defer s.recordConnection(nil, nil, nil)
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
		if fence.CheckNotExpired() != nil {
			fence.StopWrites()
		}
	}()
	return s.runLink(ctx, link, fence)
}

// fenceFor returns a registration's fence in a cluster. The holder identity contains the
// registration's UID, so only one of two registrations of the same cluster can hold the fence.
func (s *supervisor) fenceFor(ctx context.Context, r Registration, c *member.Connection) *fencing.Fence {
	holder := s.fleet.Identity + "/" + string(r.UID)
	fence := s.fences[r.ClusterID]
	if fence != nil && !fence.UsesIdentity(holder) { // the registration was re-created
		if err := fence.ReleaseLease(ctx); err != nil {
			s.log.Info("the fence was not released and will expire", "cause", err.Error())
		}
		fence = nil
	}
	if fence == nil {
		fence = fencing.NewFence(fencing.FenceOptions{
			Clock: s.fleet.clock, Member: c.Fence, Host: s.fleet.HostLive, Namespace: s.fleet.Namespace, HostID: s.fleet.HostID,
			ClusterID: r.ClusterID, Identity: holder, Duration: s.fleet.FenceDuration, Revision: s.fleet.Revision,
		})
		s.fences[r.ClusterID] = fence
	}
	fence.UseConnection(c.Fence, c.Bearer.Now)
	return fence
}

// buildLink creates a member's caches and clients, and calls the session hook to add the controllers. It
// does not start them.
func (s *supervisor) buildLink(ctx context.Context, r Registration, c *member.Connection, fence *fencing.Fence) (*member.Link, error) {
	held := &leafcache.CacheBudget{Limiter: c.Limiter, OnObject: fence.RecordRevision}
	memberCache, err := leafcache.NewLeafCache(ctx, c, held, s.fleet.Scheme, s.fleet.HostID)
	if err != nil {
		return nil, err
	}
	workloads, err := leafcache.NewWorkloadCache(ctx, c, held, s.fleet.Scheme, s.fleet.HostID)
	if err != nil {
		return nil, err
	}
	writes := guarded.NewMemberReporter(c.Live, s.fleet.HostID, r.Registration, s.fleet.Host, s.fleet.Recorder, s.fleet.clock, guarded.UnansweredPatience(s.fleet.FenceDuration))
	leaf := guarded.NewMemberWriter(writes, s.fleet.HostID, r.Registration, fence)
	l := &member.Link{
		Member: r.Member, Rules: r.Rules, Cache: memberCache, Workloads: workloads, Live: c.Live,
		Discovery: discovery.ToDiscoveryInterfaceWithContext(c.Discovery), Metadata: c.Metadata,
		Host: s.fleet.Host, HostLive: s.fleet.HostLive, Router: s.fleet.Router, Recorder: s.fleet.Recorder,
		Clock: s.fleet.clock, RecheckInterval: s.fleet.RecheckInterval, Streams: c.Streams,
		MemberWriter: leaf,
		Credentials: &member.Credentials{Connection: c, MemberWriter: leaf, ClusterID: r.ClusterID, OnRenewal: func(renewal *member.TokenRenewal) {
			s.updateState(func(state *State) { state.TokenRenewal = renewal })
		}},
		HostWriter:   guarded.NewHostWriter(s.fleet.Host, r.Registration, fence),
		NodeIdentity: guarded.NewNodeIdentity(s.fleet.HostAsNode, r.Registration, fence),
		HostSecrets:  s.fleet.HostLive, SecretsAsNode: s.fleet.SecretsAsNode,
		CheckNotSuspended: fence.CheckNotSuspended,
		RestoreTimes: func() fencing.RestoreTimes {
			return s.fleet.restores.AddHostRestores(fence.DetectedRestores(), s.fleet.clock.Now())
		},
		CheckUnrestored: fence.CheckMemberCurrent,
		AnnotateFence:   fence.AnnotateLease,
		Snapshots:       member.NewOptionalCache(), HostSnapshots: s.fleet.HostSnapshots,
		Attachments:   member.NewOptionalCache(),
		Budgets:       member.NewOptionalCache(),
		Services:      member.NewOptionalCache(),
		Limiter:       c.Limiter,
		Log:           s.log,
		OnNodeSummary: func(facts member.NodeSummary) { s.updateState(func(state *State) { state.NodeSummary = &facts }) },
	}
	if err := s.fleet.SetupLink(ctx, l); err != nil {
		return nil, fmt.Errorf("set up the member's controllers: %w", err)
	}
	kinds := KindReader{Link: l, Connection: c, CacheBudget: held, Scheme: s.fleet.Scheme, Clock: s.fleet.clock, RecheckInterval: s.fleet.RecheckInterval}
	if l.HostSnapshots != nil {
		l.AddRunnable(kinds.ServeSnapshots)
	}
	l.AddRunnable(kinds.ServeAttachments)
	l.AddRunnable(func(ctx context.Context) error {
		return kinds.ServeBudgets(ctx, func(problem *mirror.Refusal) {
			s.updateState(func(state *State) { state.BudgetsProblem = problem })
		})
	})
	l.AddRunnable(func(ctx context.Context) error {
		return kinds.ServeServices(ctx, func(problem *mirror.Refusal) {
			s.updateState(func(state *State) { state.ServicesProblem = problem })
		})
	})
	return l, nil
}

// runLink runs a link: the probe and the caches and, once the caches are synced, the controllers.
// It returns when all of them have returned.
func (s *supervisor) runLink(ctx context.Context, l *member.Link, fence *fencing.Fence) error {
	s.log.Info("connected", "clusterID", l.ClusterID, "node", l.NodeName)
	s.updateState(func(state *State) {
		state.Connected, state.Synced, state.Problem = true, false, fence.SuspensionProblem()
		state.DestructionAllowed, state.Leaving = fence.CheckNotSuspended() == nil, l.Leaving
		state.LastRestored = fence.DetectedRestores().LastRestore()
	})
	group, ctx := errgroup.WithContext(ctx)
	must := func(what string, run func(context.Context) error) {
		group.Go(func() error {
			if err := run(ctx); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			if ctx.Err() == nil {
				return fmt.Errorf("%s: %w", what, errPartEnded)
			}
			return nil
		})
	}
	must("probe", FenceProbe{
		Fence: fence, Clock: s.fleet.clock, Interval: s.fleet.ProbeInterval, EpochInterval: s.fleet.EpochInterval,
		Timeout: min(probeTimeout, s.fleet.FenceDuration/3), CheckLeading: s.fleet.CheckLeading, Registration: s.name,
	}.KeepFenceRenewed)
	must("limits", l.Limiter.WaitUntilExceeded)
	must("cache", l.Cache.Start)
	must("cache for other Pods", l.Workloads.Start)
	group.Go(func() error {
		if err := s.waitForCaches(ctx, l); err != nil {
			return err
		}
		for _, c := range l.Controllers() {
			must("controller", c.Start)
		}
		for _, run := range l.Runnables {
			must("runnable", run)
		}
		s.updateState(func(state *State) { state.Synced, state.ConsecutiveFailures = true, 0 })
		return nil
	})
	return group.Wait()
}

// waitForCaches waits until the caches are synced, but no longer than SyncTimeout.
func (s *supervisor) waitForCaches(ctx context.Context, l *member.Link) error {
	syncCtx, cancel := context.WithTimeout(ctx, s.fleet.SyncTimeout)
	defer cancel()
	if !l.Cache.WaitForCacheSync(syncCtx) || !l.Workloads.WaitForCacheSync(syncCtx) {
		if ctx.Err() != nil {
			return nil
		}
		return access.ConnectionProblemf(v1alpha1.ReasonUnreachable, "Xylem could not list the member's objects within %s. Check the account's permissions with `kubectl auth can-i --list` in the member, as the manager's user", s.fleet.SyncTimeout)
	}
	return nil
}

// renewedToken returns the new token if the registration's only change is another token of the same
// ServiceAccount. The link then continues.
func (r Registration) renewedToken(was Registration) (string, bool) {
	then, now := was.Kubeconfig, r.Kubeconfig
	was.Kubeconfig, r.Kubeconfig = nil, nil
	if !reflect.DeepEqual(was, r) {
		return "", false
	}
	return access.RenewedToken(then, now)
}

// explainExpiredToken replaces an Unauthorized Problem if the token has expired, and returns other errors
// unchanged.
func explainExpiredToken(kubeconfigToken string, now time.Time, err error) error {
	token, ok := access.ParseAccountToken(kubeconfigToken)
	if p := access.AsConnectionProblem(err); !ok || p == nil || p.Reason != v1alpha1.ReasonUnauthorized || now.Before(token.Expires) {
		return err
	}
	return access.ConnectionProblemf(v1alpha1.ReasonUnauthorized,
		access.UnauthorizedFormat+": the token in the kubeconfig expired at %s. Run `kubectl xylem register` for this registration again, or put a kubeconfig with a valid token into its Secret", "the member", token.Expires.UTC().Format(time.RFC3339))
}

// errPartEnded ends a link if one of its parts returns without an error.
var errPartEnded = errors.New("a part of the link ended early")

// retryPolicyProbe repeats a failed proof with backoff, for about a minute. It returns when its
// context ends. API servers enforce a policy only some seconds after its creation, and `kubectl
// xylem register` creates the policy just before the member is linked.
func (s *supervisor) retryPolicyProbe(ctx context.Context, c *member.Connection) error {
	backoff := s.newConnectBackoff()
	for proven := false; !proven && backoff.Steps > 0; {
		select {
		case <-ctx.Done():
			return nil
		case <-s.fleet.clock.After(backoff.Step()):
		}
		policy := c.ProbePolicyEnforced(ctx, s.fleet.HostID)
		if ctx.Err() != nil {
			return nil
		}
		s.updateState(func(state *State) { state.PolicyState = &policy })
		proven = policy.IsEnforced()
	}
	<-ctx.Done()
	return nil
}
