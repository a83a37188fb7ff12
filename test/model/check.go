package model

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	moveobjects "github.com/xylem-io/xylem/internal/cli/move/objects"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/test/model/api"
)

// Bounds limits the worlds that a check visits.
type Bounds struct {
	// Disruptions is the maximum number of disruptions on the path to a world.
	Disruptions uint8
	// Names is the number of names that claims can have.
	Names int
	// SecondWaits means that no volume is provisioned for the second claim, so that it can only be
	// bound to a free one.
	SecondWaits bool
	// Writes means that the PV controllers write a spec and a status in separate moves.
	Writes bool
	// Asks means that users can expand a claim, and request an earlier volume by its name.
	Asks bool
	// Clones means that the second claim is a clone of the first.
	Clones bool
	// Adopts means that the member already has a volume, which admins can adopt.
	Adopts bool
	// Imports means that the member already has a volume, and an admin of the host creates a PV for
	// it.
	Imports bool
	// Promises means that the host's class is in promise mode, and a Pod exists.
	Promises bool
	// Restores means that the only disruptions are backups and restores of the member, and deletions
	// of claims and host PVs.
	Restores bool
	// Edits means that users and admins edit what Xylem and Kubernetes maintain, remove finalizers, and
	// delete classes.
	Edits bool
	// Needs means that features that need the same data meet: a VolumeSnapshot of the first claim is taken,
	// and its Pod completes. It requires Clones and Adopts, so the second claim needs the first, too. Without
	// Promises, a user moves the first claim.
	Needs bool
	// Backups means that a backup tool in the member creates leaf claims again, and that the only other
	// disruptions are deletions and creations of claims and Pods.
	Backups bool
	// Members means that a second member is modeled like the first, and the scheduler can select
	// either.
	Members bool
}

// Model contains what all worlds of a check have in common.
type Model struct {
	bounds  Bounds
	objects *objects
	// self is the member whose leaf objects are in a world's memberState. other is the other member.
	self, other mirror.Member
	// second is the same model with the two members exchanged, or nil if the other member is not
	// modeled.
	second *Model
	// copyDisk is the check of the volume of a move's copy.
	copyDisk func(world, *moveobjects.Record) error
	indexes  map[indexed]client.IndexerFunc
}

// waits reports whether the scheduler never selects a node for a claim.
func (m *Model) waits(c int) bool { return c > 0 && m.bounds.SecondWaits || m.bounds.Imports }

// New returns a model without worlds.
func New(ctx context.Context, bounds Bounds) (*Model, error) {
	m := &Model{bounds: bounds, objects: newObjects(), self: here, other: there, indexes: map[indexed]client.IndexerFunc{}}
	if bounds.Members {
		m.second = &Model{bounds: bounds, objects: m.objects, self: there, other: here, indexes: m.indexes}
	}
	m.copyDisk = m.checkCopy(ctx)
	return m, m.setup(ctx)
}

// Result is the result of a check.
type Result struct {
	// Worlds, Moves and Steps are the numbers of visited worlds, of moves between them, and of
	// Xylem's moves.
	Worlds, Moves, Steps int
	// ByController counts Xylem's moves by controller.
	ByController map[string]int
	// Reconciles is the number of worlds for which the controllers ran. Worlds that look the same to
	// the controllers count once.
	Reconciles int
	// Ends is the number of worlds without moves.
	Ends int
	// Races counts the worlds with a permitted race, by its description.
	Races map[string]int
	// Histories counts the different ends that each single disruption can have, depending on when it
	// happens.
	Histories map[string]int
	// Events is the number of moves whose events the controllers' sources received.
	Events int
	// Findings are the findings by description.
	Findings map[string]*Finding
}

// Finding is a defect, with the number of worlds that show it and the path to the first such world.
type Finding struct {
	Worlds int
	Trace  string
}

// String returns a summary with the numbers of worlds and moves.
func (r Result) String() string {
	return fmt.Sprintf("%d worlds, %d moves, %d of them Xylem's (%v), from %d reconciles; %d worlds without moves",
		r.Worlds, r.Moves, r.Steps, r.ByController, r.Reconciles, r.Ends)
}

// search is a breadth-first search of all worlds.
type search struct {
	model  *Model
	ids    map[world]int
	worlds []world
	from   []int     // the world from which each world was first reached
	by     []string  // the move by which each world was first reached
	next   [][]edge  // the moves of Kubernetes and of Xylem from each world
	upset  [][]upset // the disruptions from each world
	steps  [][]step  // Xylem's steps in each world
	// taken caches the controllers' steps by what the controllers observe in a world. takenBySecond
	// does the same for the second member's controllers.
	taken, takenBySecond map[stepKey][]step
	result               Result
}

// edge is a move of Kubernetes or Xylem to another world.
type edge struct {
	to   int
	ours bool
	by   request // set if the move is Xylem's
}

// upset is a disruption that leads to another world.
type upset struct {
	to   int
	name string
}

// Check visits all worlds within the bounds. Because classes never change, except that they may be
// deleted, it makes a separate search for each combination of classes. When a search has visited all of
// its worlds, Check passes it to each of the looks.
func (m *Model) Check(ctx context.Context, looks ...func(context.Context, *search) error) (Result, error) {
	all := make([]Result, 0, len(m.classes()))
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, classes := range m.classes() {
		group.Go(func() error {
			s := m.search(ctx, classes)
			for _, look := range looks {
				if err := look(ctx, s); err != nil {
					return err
				}
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, s.result)
			return nil
		})
	}
	err := group.Wait()
	return sum(all), err
}

// sum adds up the results of searches that have no worlds in common.
func sum(all []Result) Result {
	total := newResult()
	for _, r := range all {
		total.Worlds, total.Moves, total.Steps = total.Worlds+r.Worlds, total.Moves+r.Moves, total.Steps+r.Steps
		total.Reconciles, total.Ends, total.Events = total.Reconciles+r.Reconciles, total.Ends+r.Ends, total.Events+r.Events
		for controller, steps := range r.ByController {
			total.ByController[controller] += steps
		}
		for why, worlds := range r.Races {
			total.Races[why] += worlds
		}
		for history, ends := range r.Histories {
			total.Histories[history] = max(total.Histories[history], ends)
		}
		for what, found := range r.Findings {
			if known := total.Findings[what]; known != nil {
				known.Worlds += found.Worlds
				if len(known.Trace) > len(found.Trace) {
					known.Trace = found.Trace
				}
				continue
			}
			total.Findings[what] = found
		}
	}
	return total
}

func newResult() Result {
	return Result{Findings: map[string]*Finding{}, ByController: map[string]int{}, Races: map[string]int{}, Histories: map[string]int{}}
}

// search visits all worlds with a combination of classes.
func (m *Model) search(ctx context.Context, classes state) *search {
	s := &search{model: m, ids: map[world]int{}, taken: map[stepKey][]step{}, takenBySecond: map[stepKey][]step{}, result: newResult()}
	s.begin(ctx, classes)
	for at := 0; at < len(s.worlds); at++ {
		s.expand(at, s.take(ctx, s.worlds[at]))
	}
	s.result.Worlds, s.result.Reconciles = len(s.worlds), len(s.taken)+len(s.takenBySecond)
	return s
}

func (m *Model) modes() []mode {
	if m.bounds.Promises {
		return []mode{promises, promisesWhileUsed}
	}
	return []mode{mirrors}
}

// classes returns all combinations of the two classes' policies and the host class's mode.
func (m *Model) classes() []state {
	var all []state
	for _, mode := range m.modes() {
		for _, host := range []policy{destroy, retain} {
			for _, leaf := range []policy{destroy, retain} {
				all = append(all, state{hostPolicy: host, leafPolicy: leaf, mode: mode})
			}
		}
	}
	return all
}

// begin visits the first world, which has a claim.
func (s *search) begin(ctx context.Context, classes state) {
	m := s.model
	w := world{budget: m.bounds.Disruptions, state: classes}
	if w.mode != mirrors {
		w.pod = m.objects.keep(newPod(podUIDs[0]))
	}
	if own := m.own(); m.bounds.Adopts {
		w.memberState.pvs[own], w.disks[own] = m.objects.keep(hadBefore(own, w.leafPolicy.reclaim())), true
	}
	if m.moves() {
		s.beginMoves(ctx, w)
		return
	}
	for c := range m.bounds.Names {
		w.roots[c] = m.objects.keep(m.newRoot(c, rootUIDs[c]))
	}
	if m.bounds.Imports {
		s.beginImports(w)
		return
	}
	s.visit(w, -1, fmt.Sprintf("a claim; the host's class has policy %s, the member's %s", w.hostPolicy.reclaim(), w.leafPolicy.reclaim()))
}

// take returns the controllers' steps in a world. It runs the controllers unless they already ran
// in a world that looks the same to them.
func (s *search) take(ctx context.Context, w world) []step {
	steps := s.model.taken(ctx, w, s.taken)
	if s.model.second == nil {
		return steps
	}
	return slices.Concat(steps, asSecond(s.model.second.taken(ctx, w.exchanged(), s.takenBySecond)))
}

func (m *Model) taken(ctx context.Context, w world, known map[stepKey][]step) []step {
	key := m.keyOf(w)
	steps, ok := known[key]
	if !ok {
		steps = m.steps(ctx, w)
		known[key] = steps
	}
	return steps
}

// marked returns the world with a record of which volumes a host PV represents.
func (m *Model) marked(w world) world {
	for n := range w.disks {
		if w.disks[n] && (len(m.mirrorsOf(w.hostState, leafNames[n])) > 0 || m.second != nil && len(m.second.mirrorsOf(w.hostState, leafNames[n])) > 0) {
			w.mirrored[n] = true
		}
	}
	return w
}

// visit visits a world, and returns its index.
func (s *search) visit(w world, from int, by string) int {
	w = s.model.marked(w)
	if known, ok := s.ids[w]; ok {
		return known
	}
	at := len(s.worlds)
	s.ids[w] = at
	s.worlds, s.from, s.by = append(s.worlds, w), append(s.from, from), append(s.by, by)
	s.next, s.upset, s.steps = append(s.next, nil), append(s.upset, nil), append(s.steps, nil)
	return at
}

// expand makes all possible moves from a world.
func (s *search) expand(at int, steps []step) {
	m, w := s.model, s.worlds[at]
	s.steps[at] = steps
	if w.damage != "" {
		s.find(at, w.damage, "")
		return
	}
	var told []string
	writers := map[target]string{}
	for _, step := range steps {
		for _, violation := range slices.Concat(m.misled(w, step), step.violations) {
			s.find(at, fmt.Sprintf("%s: %s%s", step.controller, violation, w.lagging), step.wrote.String())
		}
		told = append(told, step.told...)
		if step.wrote == (written{}) {
			continue
		}
		if other := writers[step.wrote.target]; other != "" && other != step.controller && w.lagging == none && !m.shared(w, step.wrote.target) {
			s.find(at, fmt.Sprintf("%s and %s both write one %s", min(other, step.controller), max(other, step.controller), step.wrote.kind), step.wrote.String())
		}
		writers[step.wrote.target] = step.controller
		to := w
		to.hostState, to.memberState = step.to.hostState, step.to.memberState
		if step.second {
			to.memberState, to.second = w.memberState, step.to.memberState
		}
		s.next[at] = append(s.next[at], edge{s.visit(to, at, step.controller+": "+step.wrote.String()), true, step.request})
		s.result.Steps++
		s.result.ByController[step.controller]++
	}
	for _, move := range m.kubernetes(w) {
		s.next[at] = append(s.next[at], edge{s.visit(move.to, at, move.name), false, request{}})
	}
	for _, move := range m.disruptions(w) {
		s.upset[at] = append(s.upset[at], upset{s.visit(move.to, at, "DISRUPTION: "+move.name), move.name})
	}
	s.result.Moves += len(s.next[at])
	if len(s.next[at]) == 0 {
		s.result.Ends++
		s.ended(at, told)
	}
}

// ended checks a world in which no moves are possible.
func (s *search) ended(at int, told []string) {
	m, w := s.model, s.worlds[at]
	if m.unused(w, claimUIDs[:]...) == "" {
		return // nothing moves only because the model has run out of UIDs for leaf claims
	}
	unsettled := m.unsettled(w)
	if m.second != nil {
		unsettled = append(unsettled, m.second.unsettled(w.exchanged())...)
	}
	for _, what := range unsettled {
		if strings.HasPrefix(what, "I1") || len(told) == 0 {
			s.find(at, what+"; nothing moves, and no reason is reported (I6)", "")
		}
	}
	for _, reason := range told {
		if strings.HasPrefix(reason, "error") {
			s.find(at, "nothing moves, except for an "+reason, "")
		}
	}
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
