package model

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// ends are the final worlds that can be reached from a world without another disruption. The keys
// are what a user observes there. A final world has no moves.
type ends map[string]int

// confluence checks that the final state does not depend on the order of moves: from each world,
// all orders of the moves of Kubernetes and Xylem lead to the same end. races lists the permitted
// exceptions.
func confluence(_ context.Context, s *search) error {
	t := s.components()
	of := make([]ends, t.components+1)
	members := make([][]int, t.components+1)
	for at, c := range t.of {
		members[c] = append(members[c], at)
	}
	// Tarjan's algorithm finds a component only after all components that can be reached from it.
	for c := 1; c <= t.components; c++ {
		of[c] = ends{}
		for _, at := range members[c] {
			if len(s.next[at]) == 0 {
				of[c][s.model.settled(s.worlds[at])] = at
			}
			for _, e := range s.next[at] {
				for end, world := range of[t.of[e.to]] {
					of[c][end] = world
				}
			}
		}
	}
	for at := range s.worlds {
		if len(of[t.of[at]]) > 1 {
			s.diverges(at, func(to int) ends { return of[t.of[to]] })
		}
	}
	s.histories(func(to int) ends { return of[t.of[to]] })
	return nil
}

// diverges records that a world has several ends, if it is the last such world on its path, so that
// each of its moves leads to only one end. The moves that lead to each end identify the race.
func (s *search) diverges(at int, of func(int) ends) {
	by := map[string][]string{}
	for _, e := range s.next[at] {
		if len(of(e.to)) > 1 {
			return
		}
		for end := range of(e.to) {
			if name := s.move(at, e); !slices.Contains(by[end], name) {
				by[end] = append(by[end], name)
			}
		}
	}
	var sides, words []string
	for end, moves := range by {
		slices.Sort(moves)
		sides = append(sides, strings.Join(moves, ", "))
		words = append(words, fmt.Sprintf("after %q: %s\n    %s", moves, end, s.model.describe(s.worlds[of(at)[end]])))
	}
	slices.Sort(sides)
	slices.Sort(words)
	if why := raced(slices.Collect(maps.Values(by))); why != "" {
		s.result.Races[why]++
		return
	}
	s.find(at, "the end depends on the order: "+strings.Join(sides, " | "), strings.Join(words, "\n    "))
}

// move returns the name of a move between two worlds.
func (s *search) move(at int, e edge) string {
	if e.ours {
		step := s.steps[at][slices.IndexFunc(s.steps[at], func(step step) bool { return step.request == e.by })]
		return fmt.Sprintf("%s: %s %s in the %s", e.by.controller, step.wrote.verb, step.wrote.kind, step.wrote.side)
	}
	for _, m := range s.model.kubernetes(s.worlds[at]) {
		if known, ok := s.ids[s.model.marked(m.to)]; ok && known == e.to {
			return m.name
		}
	}
	return "?"
}

// histories counts the different ends of each disruption, over all orders of the disruption and the
// other moves.
func (s *search) histories(of func(int) ends) {
	found := map[string]map[string]int{}
	for at, w := range s.worlds {
		if w.budget != s.model.bounds.Disruptions {
			continue
		}
		for _, u := range s.upset[at] {
			history := s.history(at, u)
			if found[history] == nil {
				found[history] = map[string]int{}
			}
			for end, world := range of(u.to) {
				found[history][end] = world
			}
		}
	}
	most := map[string]int{}
	for at, w := range s.worlds {
		if w.budget == s.model.bounds.Disruptions {
			for _, u := range s.upset[at] {
				most[u.name] = max(most[u.name], len(found[s.history(at, u)]))
			}
		}
	}
	s.result.Histories = most
}

// history returns a description of a disruption and the classes' policies.
func (s *search) history(at int, u upset) string {
	w := s.worlds[at]
	return fmt.Sprintf("%s; the classes have policies %s and %s", u.name, w.hostPolicy.reclaim(), w.leafPolicy.reclaim())
}

// settled describes what a user observes in a world, without generated names, UIDs, and traces of
// the world's history.
func (m *Model) settled(w world) string {
	var words []string
	for c, i := range w.roots {
		root := m.objects.claim(i)
		if root == nil {
			continue
		}
		words = append(words, fmt.Sprintf("%s: %s, placed %q, bound to %s", claimNames[c], root.Status.Phase, root.Annotations[v1alpha1.AnnotationPlacedIn], m.boundTo(w, root)))
	}
	for _, i := range w.hostState.pvs {
		if pv := m.objects.pv(i); pv != nil {
			words = append(words, "host PV "+m.settledVolume(w, pv))
		}
	}
	for c, i := range w.claims {
		if claim := m.objects.claim(i); claim != nil {
			words = append(words, fmt.Sprintf("leaf claim of %s: %s, names a volume: %v", claimNames[c], claim.Status.Phase, claim.Spec.VolumeName != ""))
		}
	}
	for n, i := range w.memberState.pvs {
		if pv := m.objects.pv(i); pv != nil {
			words = append(words, fmt.Sprintf("leaf PV %s, disk %v", m.settledVolume(w, pv), w.disks[n]))
		} else if w.disks[n] {
			words = append(words, "a disk without a PV")
		}
	}
	slices.Sort(words)
	return strings.Join(words, "; ")
}

// boundTo describes the volume that a claim names in spec.volumeName.
func (m *Model) boundTo(w world, root *corev1.PersistentVolumeClaim) string {
	name := root.Spec.VolumeName
	if name == "" || slices.Contains(elsewhereNames[:], name) {
		return strings.TrimSuffix(name, root.Name)
	}
	host := m.objects.pv(w.hostState.pvs[slices.Index(hostNames[:], name)])
	if host == nil {
		return "a deleted host PV"
	}
	return "host PV " + m.settledVolume(w, host)
}

func (m *Model) settledVolume(w world, pv *corev1.PersistentVolume) string {
	words := []string{string(pv.Status.Phase), string(pv.Spec.PersistentVolumeReclaimPolicy), "of " + m.claimant(w, pv)}
	if pv.DeletionTimestamp != nil {
		words = append(words, "deleting")
	}
	if hostpv.IsAbandonedVolume(pv) {
		words = append(words, "abandoned")
	}
	if _, name, uid, ours := hostpv.LeafOfHostVolume(pv); ours {
		leaf := m.objects.pv(w.memberState.pvs[slices.Index(leafNames[:], name)])
		switch {
		case leaf == nil:
			words = append(words, "leaf PV deleted")
		case leaf.UID != uid:
			words = append(words, "another leaf PV")
		}
	} else {
		_, stamped := mirror.LeafOriginFromHost(here.HostID, pv)
		words = append(words, fmt.Sprintf("stamped %v, %s", stamped, pv.Annotations[v1alpha1.AnnotationReclaimPolicy]))
	}
	return strings.Join(words, " ")
}

// claimant describes the claim to which a PV refers.
func (m *Model) claimant(w world, pv *corev1.PersistentVolume) string {
	ref := pv.Spec.ClaimRef
	if ref == nil {
		return "nobody"
	}
	for _, i := range append(w.roots[:], w.claims[:]...) {
		if claim := m.objects.claim(i); claim != nil && claim.UID == ref.UID {
			return claim.Name
		}
	}
	if ref.UID == types.UID("") {
		return "anybody"
	}
	return "a deleted claim"
}
