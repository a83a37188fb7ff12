package model

import (
	"context"
	"slices"
)

// cycles finds sets of worlds that can be reached from one another without a disruption (strongly
// connected components) and in which Xylem writes. In such a set, Xylem might write forever.
func cycles(_ context.Context, s *search) error {
	t := s.components()
	seen := map[int]bool{}
	for at, edges := range s.next {
		for _, e := range edges {
			if e.ours && t.of[at] == t.of[e.to] && !seen[t.of[at]] && !s.left(t, t.of[at]) {
				seen[t.of[at]] = true
				s.find(at, "I5: Xylem writes forever", s.by[e.to])
			}
		}
	}
	return nil
}

// left reports whether one of Xylem's own steps leaves a cycle of worlds. Such a cycle is
// acceptable only for promises, when an admin takes a promise from the member on whose node its Pod
// runs. host_volume then removes placed-in, and root_pvc places the claim again and labels the
// promise, in either order.
func (s *search) left(t *tarjan, component int) bool {
	if !s.model.bounds.Promises {
		return false
	}
	for at, c := range t.of {
		if c == component && slices.ContainsFunc(s.next[at], func(e edge) bool { return e.ours && t.of[e.to] != component }) {
			return true
		}
	}
	return false
}

// components returns the strongly connected components of the worlds (Tarjan's algorithm).
func (s *search) components() *tarjan {
	t := &tarjan{search: s, index: make([]int, len(s.worlds)), low: make([]int, len(s.worlds)), on: make([]bool, len(s.worlds)), of: make([]int, len(s.worlds))}
	for at := range s.worlds {
		if t.index[at] == 0 {
			t.from(at)
		}
	}
	return t
}

type tarjan struct {
	*search
	index, low []int
	on         []bool
	of         []int // the component of each world
	stack      []int
	counted    int
	components int
}

type frame struct{ at, edge int }

func (t *tarjan) enter(at int) frame {
	t.counted++
	t.index[at], t.low[at] = t.counted, t.counted
	t.stack = append(t.stack, at)
	t.on[at] = true
	return frame{at: at}
}

func (t *tarjan) from(start int) {
	frames := []frame{t.enter(start)}
	for len(frames) > 0 {
		f := &frames[len(frames)-1]
		if f.edge < len(t.next[f.at]) {
			to := t.next[f.at][f.edge].to
			f.edge++
			switch {
			case t.index[to] == 0:
				frames = append(frames, t.enter(to))
			case t.on[to]:
				t.low[f.at] = min(t.low[f.at], t.index[to])
			}
			continue
		}
		at := f.at
		frames = frames[:len(frames)-1]
		if len(frames) > 0 {
			parent := frames[len(frames)-1].at
			t.low[parent] = min(t.low[parent], t.low[at])
		}
		if t.low[at] == t.index[at] {
			t.pop(at)
		}
	}
}

// pop removes the component whose root is a world from the stack.
func (t *tarjan) pop(root int) {
	t.components++
	for {
		at := t.stack[len(t.stack)-1]
		t.stack = t.stack[:len(t.stack)-1]
		t.on[at], t.of[at] = false, t.components
		if at == root {
			return
		}
	}
}
