package model

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// idle is a request that is not enqueued in a world. On some path to the world, it was reconciled
// when it had nothing to do except to report said, and nothing has enqueued it since.
type idle struct {
	at int
	request
	said reasons
}

// reasons is a set of reported reasons.
type reasons uint64

// lost searches for requests that have a step or a report, but that nothing enqueues: on some path
// to a world, the request was reconciled when it had nothing to do, and no later event enqueued it.
// This is a finding if no other move is possible.
type lost struct {
	*search
	wakes *wakes
	// from maps each idle request to the world before it on the path on which the request became idle.
	from  map[idle]int
	work  []idle
	known map[string]reasons
	told  map[[2]state]map[request]bool
}

// wakeups checks that no step or report is lost because an event is missing.
func wakeups(ctx context.Context, s *search) error {
	wakes, err := s.model.newWakes(ctx)
	if err != nil {
		return err
	}
	l := &lost{search: s, wakes: wakes, from: map[idle]int{}, known: map[string]reasons{}, told: map[[2]state]map[request]bool{}}
	for at := range s.worlds {
		l.processed(at)
	}
	for len(l.work) > 0 {
		i := l.work[len(l.work)-1]
		l.work = l.work[:len(l.work)-1]
		l.follow(i)
	}
	left := map[int][]idle{}
	for i := range l.from {
		left[i.at] = append(left[i.at], i)
	}
	for at := range s.worlds {
		l.judge(at, left[at])
	}
	s.result.Events = len(l.told)
	return nil
}

// at returns the step of a request in a world, and whether the request exists there.
func (l *lost) at(at int, q request) (step, bool) {
	for _, step := range l.steps[at] {
		if step.request == q {
			return step, true
		}
	}
	return step{}, false
}

// pending reports whether a step writes anything, or reports anything beyond said.
func (l *lost) pending(s step, said reasons) bool {
	return s.wrote != (written{}) || l.reported(s)&^said != 0
}

// processed assumes that all requests were reconciled in a world, and follows them to the next
// worlds.
func (l *lost) processed(at int) {
	for _, e := range l.next[at] {
		l.passOn(at, e.to, e)
	}
	for _, u := range l.upset[at] {
		l.passOn(at, u.to, edge{to: u.to})
	}
}

// passOn passes the requests that have nothing to do in a world, or have just done it, on to the
// next world.
func (l *lost) passOn(at, to int, by edge) {
	for _, next := range l.steps[to] {
		var said reasons
		if done, there := l.at(at, next.request); there {
			own := by.ours && by.by == next.request
			if done.again || done.wrote != (written{}) && !own {
				continue // the request is still enqueued, or its step is still to be done
			}
			said = l.reported(done)
		}
		l.pass(at, to, next, said)
	}
}

// follow follows an idle request along all moves from its world, as long as it still has something
// to do.
func (l *lost) follow(i idle) {
	along := func(to int, by edge) {
		if by.ours && by.by == i.request {
			return // the move is the request's own step, so it was enqueued
		}
		if next, there := l.at(to, i.request); there {
			l.pass(i.at, to, next, i.said)
		}
	}
	for _, e := range l.next[i.at] {
		along(e.to, e)
	}
	for _, u := range l.upset[i.at] {
		along(u.to, edge{to: u.to})
	}
}

// pass records a request as idle in the next world if it has something to do there, and no event of
// the move enqueues it.
func (l *lost) pass(at, to int, next step, said reasons) {
	i := idle{to, next.request, said}
	if _, known := l.from[i]; known || !l.pending(next, said) || l.events(at, to)[next.request] {
		return
	}
	l.from[i] = at
	l.work = append(l.work, i)
}

// events returns the requests that the events of a move enqueue.
func (l *lost) events(at, to int) map[request]bool {
	before, after := l.worlds[at], l.worlds[to]
	if before.suspended != after.suspended {
		return everything // a link or the process restarts, which enqueues everything
	}
	key := [2]state{before.seen(), after.seen()}
	if key[0] == key[1] {
		return nil
	}
	found, known := l.told[key]
	if !known {
		found = l.wakes.between(key[0], key[1])
		l.told[key] = found
	}
	return found
}

// everything is the set of all requests.
var everything = func() map[request]bool {
	all := map[request]bool{}
	for _, name := range claimNames {
		all[request{"root_pvc", name}] = true
	}
	for _, name := range hostNames {
		all[request{"root_pv", name}], all[request{"host_volume", name}] = true, true
	}
	for _, name := range leafNames {
		all[request{"leaf_pv", name}] = true
	}
	return all
}()

// judge reports the idle requests of a world in which no other move is possible.
func (l *lost) judge(at int, left []idle) {
	if len(left) == 0 || slices.ContainsFunc(l.next[at], func(e edge) bool { return !e.ours }) {
		return
	}
	for _, step := range l.steps[at] {
		if step.wrote != (written{}) && !slices.ContainsFunc(left, func(i idle) bool { return i.request == step.request }) {
			return // another step is possible
		}
	}
	for _, i := range left {
		step, _ := l.at(at, i.request)
		what := fmt.Sprintf("%s has a step, and nothing enqueues it (I6)", i.controller)
		if step.wrote == (written{}) {
			what = fmt.Sprintf("%s has something to report, and nothing enqueues it (I6)", i.controller)
		}
		l.find(at, what, l.way(i)+fmt.Sprintf("%s %s, which would report %v", i.request, step.wrote, step.told))
	}
}

// way describes the path on which a request became idle.
func (l *lost) way(i idle) string {
	var worlds []int
	for seen := map[int]bool{}; !seen[i.at]; {
		seen[i.at] = true
		from, known := l.from[i]
		if !known {
			break
		}
		worlds = append(worlds, from)
		i.at = from
	}
	slices.Reverse(worlds)
	var b strings.Builder
	for n, at := range worlds {
		fmt.Fprintf(&b, "idle in world %d of %d, after %s:\n    %s\n", n+1, len(worlds), l.by[at], l.model.describe(l.worlds[at]))
	}
	return b.String()
}

// reported returns the set of reasons that a step reports.
func (l *lost) reported(s step) reasons {
	var all reasons
	for _, reason := range s.told {
		if strings.HasPrefix(reason, "error") || reason == v1alpha1.ReasonSurplusVolume || reason == v1alpha1.ReasonOrphanedVolume {
			continue // the controller retries after an error, and the controller orphan runs at intervals
		}
		if l.known[reason] == 0 {
			if len(l.known) == 64 {
				panic("more reasons than fit into a set")
			}
			l.known[reason] = 1 << len(l.known)
		}
		all |= l.known[reason]
	}
	return all
}
