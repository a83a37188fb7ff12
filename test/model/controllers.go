package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/backlog"
	"github.com/xylem-io/xylem/internal/controller/hostvolume"
	"github.com/xylem-io/xylem/internal/controller/leafpv"
	"github.com/xylem-io/xylem/internal/controller/rootpv"
	"github.com/xylem-io/xylem/internal/controller/rootpvc"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/volume/observe"
	"github.com/xylem-io/xylem/test/model/api"
)

// target identifies the object of a write.
type target struct {
	side       side
	kind, name string
}

// written describes the first write of a reconcile; the zero value means none.
type written struct {
	verb string
	target
}

func (w written) String() string {
	return fmt.Sprintf("%s %s in the %s, %s", w.verb, w.kind, w.side, w.name)
}

// run is one reconcile in a world. Its first write changes the world.
type run struct {
	world      world
	wrote      written
	violations []string
	told       []string
	clock      *stopped

	// second reports whether the reconcile attempted a second write, and misuses are the invariants that it
	// would have violated.
	second  bool
	misuses []string
	// meanwhile changes the world after the first write, if it is not nil.
	meanwhile func(world) world
}

// stopped is a clock that only the model advances.
type stopped struct{ now time.Time }

func (s *stopped) Now() time.Time { return s.now }

func (s *stopped) Since(t time.Time) time.Duration { return s.now.Sub(t) }

func (r *run) tell(reason string) {
	if reason != "" && !slices.Contains(r.told, reason) {
		r.told = append(r.told, reason)
	}
}

// Eventf records the reason of an event, because an event counts as a report to the user.
func (r *run) Eventf(_, _ runtime.Object, _, reason, _, _ string, _ ...any) { r.tell(reason) }

// guard implements the guard of a manager that holds the fence.
type guard struct{ run *run }

func (guard) CheckFenceHeld() error { return nil }

func (g guard) CheckNotSuspended() error {
	if g.run.world.suspended != neither {
		return fmt.Errorf("%w: a cluster of the model was restored", guarded.ErrSuspended)
	}
	return nil
}

func (g guard) CheckHostCurrent(context.Context) error { return g.CheckNotSuspended() }

// request is a controller's request for an object by its name.
type request struct{ controller, name string }

// step is the result of a reconcile.
type step struct {
	request
	wrote      written
	to         state // the state after the reconcile
	violations []string
	told       []string
	// again reports whether the controller requeues the request or returned an error.
	again bool
	// second reports whether the step is one of the second member's controllers. In "to", the members
	// are then exchanged.
	second bool
}

// stepKey contains all inputs of the steps in a world.
type stepKey struct {
	seen, live state
	mirrored   [leaves]bool
	// claim and pvs are the next UIDs of a leaf claim, and of each host PV.
	claim types.UID
	pvs   [hosts]types.UID
}

func (m *Model) keyOf(w world) stepKey {
	referred := m.referred(w)
	key := stepKey{seen: w.seen(), live: w.state, mirrored: w.mirrored, claim: firstUnused(referred, claimUIDs[:]...)}
	for n, uids := range hostUIDs {
		key.pvs[n] = firstUnused(referred, uids...)
	}
	return key
}

// steps returns the steps of all controllers in a world.
func (m *Model) steps(ctx context.Context, w world) []step {
	seen := w.seen()
	var all []step
	at := func(controller, name string) {
		all = append(all, m.step(ctx, w, request{controller, name}))
	}
	for _, name := range claimNames[:m.bounds.Names] {
		at(rootpvc.Name, name)
	}
	for n, i := range seen.hostState.pvs {
		if i != 0 {
			at(rootpv.Name, hostNames[n])
			if m.self.ClusterID == here.ClusterID { // host_volume runs once, not once for each member
				at(hostvolume.Name, hostNames[n])
			}
		}
	}
	for n, i := range seen.memberState.pvs {
		if i != 0 {
			at(leafpv.Name, leafNames[n])
		}
	}
	return all
}

// step runs one reconcile, as in a process that has just started. If root_pv makes a second write, which may
// destroy data, it must be safe even if any disruption comes between the two.
func (m *Model) step(ctx context.Context, w world, q request) step {
	r := &run{world: w, clock: &stopped{after.Time}}
	s := m.reconcile(ctx, w, q, r)
	s.violations = append(s.violations, r.misuses...)
	if !r.second || q.controller != rootpv.Name {
		return s
	}
	between := r.world
	between.budget = 1
	for _, move := range m.disruptions(between) {
		r := &run{world: w, clock: &stopped{after.Time}, meanwhile: func(world) world { return move.to }}
		m.reconcile(ctx, w, q, r)
		for _, misuse := range r.misuses {
			s.violations = append(s.violations, misuse+", by the second write of a reconcile, after: "+move.name)
		}
	}
	return s
}

func (m *Model) reconcile(ctx context.Context, w world, q request, r *run) step {
	seen := w.seen()
	cached := func(s side) reader { return reader{contents: contents{m, s, func() state { return seen }}} }
	live := func(s side) reader {
		return reader{contents: contents{m, s, func() state { return r.world.state }}, live: true}
	}
	var reconciler reconcile.Reconciler
	if q.controller == hostvolume.Name {
		reconciler = guarded.WrapReconciler(&hostvolume.Reconciler{
			Client: writer{reader: cached(hostSide), run: r}, Live: live(hostSide), Recorder: r,
			Records: &fencing.HostRecords{Live: live(hostSide), Namespace: system, Clock: clock.RealClock{}},
		})
	} else {
		reconciler = m.linked(q.controller, w, r, cached, live)
	}
	var result reconcile.Result
	err := api.Recovered(func() (err error) { result, err = reconciler.Reconcile(ctx, q.key()); return err })
	if err == nil && r.wrote == (written{}) && result.RequeueAfter > 0 {
		r.clock.now = r.clock.now.Add(result.RequeueAfter) // run the reconcile again later, because it wrote nothing
		err = api.Recovered(func() (err error) { result, err = reconciler.Reconcile(ctx, q.key()); return err })
	}
	var refusal *mirror.Refusal
	switch {
	case err == nil, errors.Is(err, errKilled):
	case errors.As(err, &refusal) && refusal.Reason == v1alpha1.ReasonNameTaken && slices.Contains(r.told, refusal.Reason):
		// The controller has reported the problem, and retries because no event reports the member's object.
	case api.Panicked(err):
		r.violations = append(r.violations, fmt.Sprintf("%s panics: %v", q.controller, err))
	default:
		r.tell("error: " + err.Error())
	}
	return step{request: q, wrote: r.wrote, to: r.world.state, violations: r.violations, told: r.told, again: err != nil || result.RequeueAfter > 0}
}

// key converts the request. Only claims have a namespace.
func (q request) key() reconcile.Request {
	key := types.NamespacedName{Name: q.name}
	if q.controller == rootpvc.Name {
		key.Namespace = namespace
	}
	return reconcile.Request{NamespacedName: key}
}

// linked returns a controller of the member's link.
func (m *Model) linked(name string, w world, r *run, cached, live func(side) reader) reconcile.Reconciler {
	link := m.newLink(w, r, cached, live)
	others := func(context.Context, mirror.Member) ([]proof.OtherMember, error) {
		return m.others(live(memberSide)), nil
	}
	if err := addTo(link, name, cached, live, others); err != nil {
		panic(err)
	}
	return link.Controllers()[0]
}

// newLink creates a link to the member in a world.
func (m *Model) newLink(w world, r *run, cached, live func(side) reader) *member.Link {
	g := guard{r}
	return &member.Link{
		Member: m.self, Cache: cached(memberSide), Live: live(memberSide), Host: cached(hostSide), HostLive: live(hostSide),
		Recorder: r, Clock: r.clock, Snapshots: member.NewOptionalCache(), HostSnapshots: route.NewOptionalCache(), // neither cluster serves VolumeSnapshots
		MemberWriter:      guarded.NewMemberWriter(writer{reader: live(memberSide), run: r}, m.self.HostID, m.self.Registration, g),
		HostWriter:        guarded.NewHostWriter(writer{reader: live(hostSide), run: r}, m.self.Registration, g),
		CheckNotSuspended: g.CheckNotSuspended,
		RestoreTimes:      func() fencing.RestoreTimes { return restoresOf(w.state) },
		CheckUnrestored:   func(context.Context) error { return nil },
		AnnotateFence:     func(context.Context, func(*coordinationv1.Lease) (*coordinationv1.Lease, error)) error { return nil },
	}
}

// addTo adds a controller to a link. The controller has no state in memory.
func addTo(link *member.Link, name string, cached, live func(side) reader, others func(context.Context, mirror.Member) ([]proof.OtherMember, error)) error {
	mirrors := account.NewMirrorTracker(cached(hostSide), live(hostSide))
	volumes := observe.Options{Orphans: account.NewOrphanTracker(), SilentAfter: rootpvc.DefaultSilentAfter, UnusedPromises: observe.NewUnusedPromises()}
	switch name {
	case rootpvc.Name:
		return rootpvc.Setup(link, rootpvc.Options{Options: volumes, Namespace: system, Mirrors: mirrors, Latency: account.NewProvisioningLatency(clock.RealClock{}), Backlog: backlog.New(clock.RealClock{}, backlog.DefaultLimit), OtherMembers: others})
	case rootpv.Name:
		return rootpv.Setup(link, volumes, &fencing.HostRecords{Live: live(hostSide), Namespace: system, Clock: clock.RealClock{}})
	case leafpv.Name:
		return leafpv.Setup(link, leafpv.Options{Options: volumes, Mirrors: mirrors})
	}
	return fmt.Errorf("%s is not a controller of a link", name)
}

func restoresOf(s state) fencing.RestoreTimes {
	var r fencing.RestoreTimes
	if s.memberRestored {
		r.Member = restored
	}
	if s.hostRestored {
		r.Host, r.HostUnconfirmed = restored, s.suspended == theHost
	}
	return r
}

func (m *Model) setup(ctx context.Context) error {
	if err := index.SetupHostIndexes(ctx, indexer{m, hostSide}); err != nil {
		return err
	}
	return index.SetupMemberIndexes(ctx, indexer{m, memberSide})
}
