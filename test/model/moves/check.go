package moves

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// Bounds limits the worlds that a check visits.
type Bounds struct {
	// Policy is the reclaim policy of the claim's class.
	Policy corev1.PersistentVolumeReclaimPolicy
	// Eager lets Kubernetes and Xylem act after each request of a command. Otherwise, they act only
	// while it waits.
	Eager bool
	// Writes is the number of Pods that can write to the claim's disk.
	Writes int
	// Disruptions is the maximum number of disruptions on the path to a world.
	Disruptions int
	// Restores means that the only disruptions are restores of the host. A backup is made between two
	// commands, or when a command is killed.
	Restores bool
	// During means that restores also happen while a command runs.
	During bool
	// Existing means that the target has a disk that any claim of the class may be bound to.
	Existing Offer
}

// Offer is who offers an existing disk.
type Offer string

// An admin of the host offers a host PV, or an admin of the target offers a PV there.
const (
	ByHost   Offer = "host"
	ByTarget Offer = "target"
)

// Result is the result of a check.
type Result struct {
	// Worlds is the number of visited worlds, and Runs the number of executed commands.
	Worlds, Runs int
	// Findings are the findings by description.
	Findings map[string]*Finding
	// Ended counts how the commands ended without a disruption.
	Ended map[string]int
}

// Finding is a defect, with the number of worlds that show it and the path to the first such world.
type Finding struct {
	Worlds int
	Trace  string
}

// maxDisks is the number of disks, apart from an existing one, from which the search begins no other move.
const maxDisks = 2

// search is a breadth-first search of all worlds.
type search struct {
	ctx    context.Context //nolint:containedctx // a search is one call
	bounds Bounds
	ids    map[string]int
	worlds []*world
	from   []int
	by     []string
	result Result
}

// Check visits all worlds within the bounds.
func Check(ctx context.Context, bounds Bounds) Result {
	s := &search{ctx: ctx, bounds: bounds, ids: map[string]int{}, result: Result{Findings: map[string]*Finding{}, Ended: map[string]int{}}}
	s.visit(first(bounds), -1, fmt.Sprintf("a claim with policy %s", bounds.Policy))
	for at := 0; at < len(s.worlds); at++ {
		s.expand(at)
	}
	s.result.Worlds = len(s.worlds)
	return s.result
}

// first returns the world in which the claim is bound to its disk, and a Pod has written to it.
func first(bounds Bounds) *world {
	w := &world{objects: map[key]client.Object{}, disks: map[string]disk{}, policy: bounds.Policy, writes: bounds.Writes, budget: bounds.Disruptions, texts: texts{}}
	claim := newClaim(w.uid())
	pv := mirrorOf(claim, w.uid(), bounds.Policy, from, false)
	claim.Spec.VolumeName, claim.Status.Phase = pv.Name, corev1.ClaimBound
	w.put(claim)
	w.put(pv)
	w.disks[pv.Name] = disk{in: from, content: "a", holder: claim.UID}
	w.data, w.newest, w.calm = []written{{"a", 0}}, "a", true
	switch bounds.Existing {
	case ByHost:
		pv := mirrorOf(newClaim(w.uid()), w.uid(), bounds.Policy, to, false)
		pv.Spec.ClaimRef, pv.Status.Phase = nil, corev1.VolumeAvailable
		w.put(pv)
		w.disks[pv.Name] = disk{in: to, content: existing}
	case ByTarget:
		w.offered = true
		w.disks[offeredDisk] = disk{in: to, content: existing}
	default:
		return w
	}
	w.data = append(w.data, written{existing, 0})
	return w
}

func (s *search) visit(w *world, from int, by string) {
	w.settle()
	w.check()
	s.report(w, from, by)
	maps.DeleteFunc(w.disks, func(name string, d disk) bool { return d.destroyed && w.volume(name) == nil })
	id := w.id()
	if _, known := s.ids[id]; known {
		return
	}
	s.ids[id] = len(s.worlds)
	s.worlds, s.from, s.by = append(s.worlds, w), append(s.from, from), append(s.by, by)
}

// report records the problems of a world.
func (s *search) report(w *world, from int, by string) {
	for _, what := range w.problems {
		f := s.result.Findings[what]
		if f == nil {
			trace := []string{"  " + by}
			for i := from; i >= 0; i = s.from[i] {
				trace = append(trace, "  "+s.by[i])
			}
			slices.Reverse(trace)
			f = &Finding{Trace: strings.Join(append(trace, w.describe()), "\n")}
			s.result.Findings[what] = f
		}
		f.Worlds++
	}
	w.problems = nil
}

// attempt is the result of a command.
type attempt struct {
	to  *world
	err error
}

// run executes a command in a copy of a world.
func (s *search) run(w *world, v verb, prepare func(*host)) (*world, *host, error) {
	c := w.clone()
	h := newHost(c, s.bounds.Eager)
	if prepare != nil {
		prepare(h)
	}
	s.result.Runs++
	err := execute(s.ctx, v, h)
	return c, h, err
}

// usual makes the events that are not disruptions, and reports whether none of them ends a disruption.
func (s *search) usual(at int) bool {
	calm := true
	for _, e := range usual() {
		if c := s.worlds[at].clone(); (s.bounds.Restores || !e.backup) && e.do(c) {
			s.visit(c, at, e.name)
			calm = calm && (e.backup || e.uses)
		}
	}
	return calm
}

// expand makes all steps from a world.
func (s *search) expand(at int) {
	w, calm := s.worlds[at], s.usual(at)
	undisturbed := map[verb]attempt{}
	for _, v := range []verb{move, undo, deleteOld} {
		if v == move && w.ownDisks() >= maxDisks && len(all[*corev1.ConfigMap](w, records)) == 0 {
			continue
		}
		c, h, err := s.run(w, v, nil)
		undisturbed[v] = attempt{c, err}
		s.result.Ended[string(v)+": "+outcome(err)]++
		s.ended(w, c, v, err)
		s.visit(c, at, fmt.Sprintf("%s: %v", v, outcome(err)))
		if w.budget == 0 {
			continue
		}
		if s.bounds.Restores {
			s.backedUp(at, v, h.changes)
		} else {
			s.killed(at, v, h.changes, nil, "")
		}
		if s.bounds.Restores && !s.bounds.During {
			continue
		}
		for _, e := range s.disruptions() {
			for _, n := range h.moments {
				s.disrupted(at, v, e, n)
			}
		}
	}
	if calm {
		s.settled(at, undisturbed)
	}
	if w.budget == 0 {
		return
	}
	for _, e := range s.disruptions() {
		if c := w.clone(); e.do(c) {
			c.budget, c.calm = c.budget-1, false
			s.visit(c, at, "DISRUPTION: "+e.name)
		}
	}
}

// disruptions returns the disruptions that the search considers.
func (s *search) disruptions() []event {
	return slices.DeleteFunc(disruptions(s.ctx), func(e event) bool { return e.restores != s.bounds.Restores })
}

// backedUp kills a command after each of its changes, and makes a backup of the host.
func (s *search) backedUp(at int, v verb, changes int) {
	if s.worlds[at].backup != nil {
		return
	}
	for n := 1; n <= changes; n++ {
		c, _, _ := s.run(s.worlds[at], v, func(h *host) { h.killAfter = n })
		c.backup = maps.Clone(c.objects)
		s.visit(c, at, fmt.Sprintf("%s, killed after change %d, and a backup of the host", v, n))
	}
}

// killed kills a command after each of its changes.
func (s *search) killed(at int, v verb, changes int, prepare func(*host), with string) {
	for n := 1; n <= changes; n++ {
		c, _, _ := s.run(s.worlds[at], v, func(h *host) {
			h.killAfter = n
			if prepare != nil {
				prepare(h)
			}
		})
		c.budget, c.calm = c.budget-1, false
		s.visit(c, at, fmt.Sprintf("%s%s, KILLED after change %d", v, with, n))
	}
}

// disrupted runs a command with a disruption before its request n, and then also kills it.
func (s *search) disrupted(at int, v verb, e event, n int) {
	happened := false
	prepare := func(h *host) {
		h.before = func(request int) {
			if request == n {
				happened = e.do(h.w)
				h.w.budget, h.w.calm = h.w.budget-1, false
			}
		}
	}
	c, h, err := s.run(s.worlds[at], v, prepare)
	if !happened {
		return
	}
	with := fmt.Sprintf(", DISRUPTION before request %d: %s", n, e.name)
	s.visit(c, at, fmt.Sprintf("%s%s: %v", v, with, outcome(err)))
	if s.worlds[at].budget > 1 {
		s.killed(at, v, h.changes, prepare, with)
	}
}

// outcome returns the first line of an error.
func outcome(err error) string {
	switch {
	case err == nil:
		return "done"
	case nothingToDo(err):
		return "nothing to do"
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return random.ReplaceAllString(line, "#")
}

// ended checks the result of a move or an undo that ran without a disruption.
func (s *search) ended(before, after *world, v verb, err error) {
	if err != nil || v == deleteOld {
		return
	}
	after.moved(v)
	if before.calm {
		after.tidy(v)
	}
}

// moved checks that a claim is bound to the right disk.
func (w *world) moved(v verb) {
	claim := w.claim(name)
	if claim == nil && v == undo && !slices.ContainsFunc(w.data, func(x written) bool { return x.content != existing }) {
		return // the user deleted the claim, and its data with it
	}
	if claim == nil || claim.Status.Phase != corev1.ClaimBound {
		w.problem("%s ends, but the claim is not bound", v)
		return
	}
	d, there := w.disks[claim.Spec.VolumeName]
	if !there || d.destroyed {
		return // the member's admin destroyed it, or a restore of the host lost the deletion
	}
	if v == move && d.in != to || v == undo && d.in != from {
		w.problem("%s ends, but the claim is bound to a disk in member %s", v, places[d.in].Registration)
	} else if w.newest != "" && d.content != w.newest {
		w.problem("%s ends, but the claim's disk has content %q, not %q", v, d.content, w.newest)
	}
}

// tidy checks that nothing else is left, except for disks that the user can let the command destroy.
func (w *world) tidy(v verb) {
	for _, pv := range all[*corev1.PersistentVolume](w, volumes) {
		if w.disks[pv.Name].content == existing {
			if pv.Name != offeredDisk && pv.Status.Phase != corev1.VolumeAvailable {
				w.problem("%s leaves the volume that the host's admin offers %s", v, pv.Status.Phase)
			}
			continue
		}
		if pv.Status.Phase == corev1.VolumeReleased && pv.Annotations[v1alpha1.AnnotationMoveClaim] == "" && w.policy == corev1.PersistentVolumeReclaimDelete {
			w.problem("%s leaves volume %s, which --delete-source does not find", v, random.ReplaceAllString(pv.Name, "#"))
		}
		if policy := pv.Spec.PersistentVolumeReclaimPolicy; pv.Status.Phase == corev1.VolumeBound && policy != w.policy {
			w.problem("%s leaves the claim's volume with policy %s", v, policy)
		}
	}
	if pods, records := len(all[*corev1.Pod](w, pods)), len(all[*corev1.ConfigMap](w, records)); pods > 0 || len(all[*corev1.PersistentVolumeClaim](w, claims)) > 1 || v == undo && records > 0 {
		w.problem("%s leaves %d Pods, and %d records", v, pods, records)
	}
}

// settled checks that, in a world without a disruption that still has to end, the move or its undo
// succeeds. undisturbed are the results of the commands that have already run in this world.
func (s *search) settled(at int, undisturbed map[verb]attempt) {
	w := s.worlds[at].clone()
	if w.claim(name) == nil && len(all[*corev1.ConfigMap](w, records)) == 0 {
		return // the user deleted the claim
	}
	var errs []string
	for _, v := range []verb{move, undo} {
		c := w
		for n := range 3 {
			tried, known := undisturbed[v]
			if !known || n > 0 {
				tried.to, _, tried.err = s.run(c, v, nil)
			}
			err := tried.err
			if c = tried.to.clone(); err == nil || nothingToDo(err) {
				if claim := c.claim(name); claim != nil && claim.Status.Phase == corev1.ClaimBound || claim == nil && v == undo {
					return
				}
			}
			if claim := c.claim(name); claim != nil && strings.Contains(outcome(err), "Delete that claim") {
				c.givesUp(claim)
				c.remove(claim)
				c.settle()
			}
			errs = append(errs, string(v)+": "+outcome(err))
		}
	}
	c := w.clone()
	c.problem("neither the move nor its undo succeeds: %s", strings.Join(slices.Compact(errs), "; "))
	s.report(c, at, "the disruptions have ended")
}
