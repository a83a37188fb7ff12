package snapshots

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/controller/hostsnapshot"
	"github.com/xylem-io/xylem/internal/controller/leafsnapshot"
	"github.com/xylem-io/xylem/internal/controller/rootsnapshot"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/fencing"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/test/model/api"
)

// Model contains what all worlds of a check have in common.
type Model struct {
	// SilentAfter is how long the member's snapshot-controller and csi-snapshotter may take to
	// respond. If every object is older (age), both are reported until they respond.
	SilentAfter time.Duration

	bound   uint8
	objects *objects
	indexes map[string]client.IndexerFunc
	taken   map[stepKey][]step
}

// New returns a model with a maximum number of disruptions on the path to a world.
func New(ctx context.Context, disruptions uint8) (*Model, error) {
	m := &Model{
		SilentAfter: 2 * age, bound: disruptions, objects: &objects{ids: map[string]id{}}, indexes: map[string]client.IndexerFunc{}, taken: map[stepKey][]step{},
	}
	return m, index.SetupSnapshotIndexes(ctx, m)
}

// run is one reconcile in a world. Its first write changes the world.
type run struct {
	world      world
	wrote      string
	slot       int
	status     bool // the write was to the status
	violations []string
	exhausted  bool
	now        time.Time
}

func (r *run) Now() time.Time { return r.now }

func (r *run) Since(t time.Time) time.Duration { return r.now.Sub(t) }

// Eventf ignores events, because nothing depends on them.
func (*run) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...any) {}

// guard implements the guard of a manager that holds the fence.
type guard struct{ suspended bool }

func (guard) CheckFenceHeld() error { return nil }

func (g guard) CheckNotSuspended() error {
	if g.suspended {
		return fmt.Errorf("%w: a cluster of the model was restored", guarded.ErrSuspended)
	}
	return nil
}

func (g guard) CheckHostCurrent(context.Context) error { return g.CheckNotSuspended() }

// step is the result of a reconcile.
type step struct {
	controller string
	wrote      string
	slot       int
	status     bool
	to         state
	of         [leaves]uint8
	violations []string
	err        string
	exhausted  bool
}

// stepKey contains all inputs of the steps in a world.
type stepKey struct {
	seen, live       state
	of               [leaves]uint8
	made             uint8
	suspended        restoredCluster
	hostPolicy, leaf policy
	theirs, givenUp  bool
}

// steps returns the steps of all controllers in a world.
func (m *Model) steps(ctx context.Context, w world) []step {
	key := stepKey{w.seen(), w.state, w.of, w.made, w.suspended, w.hostPolicy, w.leafPolicy, w.theirs, w.givenUp}
	if known, ok := m.taken[key]; ok {
		return known
	}
	var all []step
	for _, controller := range []string{rootsnapshot.Name, leafsnapshot.Name, hostsnapshot.Name} {
		for n := range w.made {
			s := m.step(ctx, w, controller, mirrorsnapshot.ContentName(rootUID(int(n))))
			if s.wrote != "" || s.err != "" || s.exhausted || len(s.violations) > 0 {
				all = append(all, s)
			}
		}
	}
	m.taken[key] = all
	return all
}

// step runs one reconcile, as in a process that has just started.
func (m *Model) step(ctx context.Context, w world, controller, name string) (s step) {
	r := &run{world: w, now: deleted.Time}
	seen := w.seen()
	cached := func(s side) reader {
		return reader{model: m, side: s, promised: w.promised, state: func() state { return seen }}
	}
	live := func(s side) reader {
		return reader{model: m, side: s, promised: w.promised, state: func() state { return r.world.state }}
	}
	reconciler, err := m.reconciler(controller, r, cached, live)
	if err != nil {
		panic(err)
	}
	s.controller = controller
	defer func() {
		if p := recover(); p != nil {
			s.violations = append(s.violations, fmt.Sprintf("%s panics: %v", controller, p))
		}
	}()
	_, err = reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	s.wrote, s.slot, s.status, s.to, s.of = r.wrote, r.slot, r.status, r.world.state, r.world.of
	s.violations, s.exhausted = r.violations, r.exhausted
	switch {
	case err == nil, errors.Is(err, errKilled):
	case api.Panicked(err):
		s.violations = append(s.violations, fmt.Sprintf("%s panics: %v", controller, err))
	default:
		s.err = err.Error()
	}
	return s
}

// reconciler returns a new instance of a controller, which has no state in memory.
func (m *Model) reconciler(controller string, r *run, cached, live func(side) reader) (reconcile.Reconciler, error) {
	host := route.NewOptionalCache()
	host.StartServing(cached(hostSide))
	if controller == hostsnapshot.Name {
		return guarded.WrapReconciler(&hostsnapshot.Reconciler{
			Client: writer{reader: cached(hostSide), run: r}, Live: live(hostSide), Snapshots: host, Recorder: r, Clock: r,
			Records: &fencing.HostRecords{Live: live(hostSide), Namespace: "xylem-system", Clock: clock.RealClock{}},
		}), nil
	}
	g := guard{r.world.suspended != neither}
	link := &member.Link{
		Member: here, Cache: cached(memberSide), Live: live(memberSide), Host: cached(hostSide), HostLive: live(hostSide),
		HostSnapshots: host, Snapshots: member.NewOptionalCache(), Recorder: r, Clock: r, CheckNotSuspended: g.CheckNotSuspended,
		MemberWriter:    guarded.NewMemberWriter(writer{reader: live(memberSide), run: r}, here.HostID, here.Registration, g),
		HostWriter:      guarded.NewHostWriter(writer{reader: live(hostSide), run: r}, here.Registration, g),
		CheckUnrestored: func(context.Context) error { return nil },
		AnnotateFence:   func(context.Context, func(*coordinationv1.Lease) (*coordinationv1.Lease, error)) error { return nil },
	}
	link.Snapshots.StartServing(cached(memberSide))
	var err error
	if controller == rootsnapshot.Name {
		err = rootsnapshot.Setup(link, nil)
	} else {
		err = leafsnapshot.Setup(link, leafsnapshot.Options{Orphans: account.NewOrphanTracker(), SilentAfter: m.SilentAfter})
	}
	return link.Controllers()[0], err
}

// Result is the result of a check.
type Result struct {
	// Worlds is the number of visited worlds, and Ends is the number of those without moves.
	Worlds, Ends int
	// ByController counts the steps of each controller.
	ByController map[string]int
	// Findings are the findings by description.
	Findings map[string]*Finding
}

// Finding is a defect, with the number of worlds that show it and the path to the first such world.
type Finding struct {
	Worlds int
	Trace  string
}

// search is a breadth-first search of all worlds.
type search struct {
	model  *Model
	ids    map[world]int
	worlds []world
	from   []int    // the world from which each world was first reached
	by     []string // the move by which each world was first reached
	result Result
}

// Check visits all worlds that can be reached from a new VolumeSnapshot, within the bounds, and
// returns the defects that it finds. host and leaf are the policies of the two classes.
func (m *Model) Check(ctx context.Context, host, leaf policy) Result {
	return m.from(ctx, m.begin(host, leaf, m.bound), fmt.Sprintf("a VolumeSnapshot; the host's class has policy %s, the member's %s", host, leaf)).result
}

// CheckRestore is Check from a ready VolumeSnapshot that is deleted while a claim is restored from it or,
// if promised is set, while a claim that must be restored from it is bound to a promise.
func (m *Model) CheckRestore(ctx context.Context, host, leaf policy, promised bool) (Result, error) {
	undisturbed := m.from(ctx, m.begin(host, leaf, 0), "")
	for _, w := range undisturbed.worlds {
		if s := m.snapshot(w.state, root); s == nil || !ready(s) {
			continue
		}
		w.restoring, w.budget = !promised, m.bound
		if promised {
			w.promised = 1
		}
		change(m, &w, root, func(s *snapshotv1.VolumeSnapshot) { delet(s) })
		return m.from(ctx, w, fmt.Sprintf("a claim is restored from a VolumeSnapshot, which is deleted; the host's class has policy %s, the member's %s", host, leaf)).result, nil
	}
	return Result{}, errors.New("no VolumeSnapshot becomes ready")
}

func (m *Model) begin(host, leaf policy, budget uint8) world {
	w := world{hostPolicy: host, leafPolicy: leaf, budget: budget, made: 1}
	w.state[root] = m.objects.keep(newSnapshot(rootUID(0)))
	return w
}

// from searches all worlds that can be reached from a world.
func (m *Model) from(ctx context.Context, w world, by string) *search {
	s := &search{model: m, ids: map[world]int{}, result: Result{ByController: map[string]int{}, Findings: map[string]*Finding{}}}
	s.visit(w, -1, by)
	for at := 0; at < len(s.worlds); at++ {
		s.expand(ctx, at)
	}
	s.result.Worlds = len(s.worlds)
	return s
}

func (s *search) visit(w world, from int, by string) {
	if _, known := s.ids[w]; known {
		return
	}
	s.ids[w] = len(s.worlds)
	s.worlds, s.from, s.by = append(s.worlds, w), append(s.from, from), append(s.by, by)
}

// written identifies the part of an object that a step wrote.
type written struct {
	slot   int
	status bool
}

// expand makes all possible moves from a world.
func (s *search) expand(ctx context.Context, at int) {
	m, w := s.model, s.worlds[at]
	steps := m.steps(ctx, w)
	s.ours(at, steps)
	others := m.kubernetes(w)
	for _, move := range others {
		s.visit(move.to, at, move.name)
	}
	for _, move := range m.disruptions(w) {
		s.visit(move.to, at, "DISRUPTION: "+move.name)
	}
	moves := len(others) > 0 || slices.ContainsFunc(steps, func(s step) bool { return s.wrote != "" || s.exhausted })
	if !moves && w.lagging == none && w.suspended == neither {
		s.result.Ends++
		s.ended(at, steps)
	}
}

// ours makes the steps of Xylem's controllers in a world.
func (s *search) ours(at int, steps []step) {
	w := s.worlds[at]
	writers := map[written]string{}
	for _, step := range steps {
		for _, violation := range step.violations {
			s.find(at, step.controller+": "+violation+w.lagging.String(), step.wrote)
		}
		if step.wrote == "" {
			continue
		}
		what := written{step.slot, step.status}
		if other := writers[what]; other != "" && other != step.controller && w.lagging == none {
			s.find(at, fmt.Sprintf("%s and %s both write one object", min(other, step.controller), max(other, step.controller)), step.wrote)
		}
		writers[what] = step.controller
		to := w
		to.state, to.of = step.to, step.of
		s.visit(to, at, step.controller+": "+step.wrote)
		s.result.ByController[step.controller]++
	}
}

// ended checks a world in which no moves are possible.
func (s *search) ended(at int, steps []step) {
	told := s.model.told(s.worlds[at])
	for _, step := range steps {
		if step.err != "" {
			told = true
			s.find(at, "nothing moves, except for an error of "+step.controller+": "+step.err, "")
		}
	}
	for _, what := range s.model.exposed(s.worlds[at]) {
		s.find(at, what+"; nothing moves (I2)", "")
	}
	if s.worlds[at].restoring || s.worlds[at].promised != 0 {
		if !told && s.model.lost(s.worlds[at]) {
			s.find(at, "a snapshot from which a claim is restored is lost; nothing moves, and nothing is reported (I6)", "")
		}
		return // the deletion continues after the restore
	}
	for _, what := range s.model.unsettled(s.worlds[at]) {
		if strings.HasPrefix(what, "I1") || !told {
			s.find(at, what+"; nothing moves, and nothing is reported (I6)", "")
		}
	}
}

// told reports whether a host content reports a problem.
func (m *Model) told(w world) bool {
	return slices.ContainsFunc([]int{content, content + 1}, func(slot int) bool {
		c := m.content(w.state, slot)
		return c != nil && c.Status != nil && c.Status.Error != nil
	})
}

func (s *search) find(at int, what, last string) {
	f := s.result.Findings[what]
	if f == nil {
		f = &Finding{}
		s.result.Findings[what] = f
		f.Trace = strings.Join(append(api.Trace(at, s.from, s.by, last), "    "+s.model.describe(s.worlds[at])), "\n")
	}
	f.Worlds++
}
