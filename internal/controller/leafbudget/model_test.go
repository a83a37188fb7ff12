package leafbudget

import (
	"fmt"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
)

// The model: the Pods of one budget run in up to two members and on a node of the host. Each place evicts Pods as the
// eviction API does, by the status that a disruption controller last wrote. Everything that one program learns from
// another is delivered late, in any order: the statuses of Pods, of budgets, and the caches.

// place is a cluster's part in the model. Place 0 is the host's own node.
const (
	onHostNode = iota
	inMemberA
	inMemberB
	places
)

// world is a state of the model. It is comparable.
type world struct {
	// healthy is the number of Pods that really are healthy, by place. shown is the number that the host shows as Ready.
	// cached is what Xylem's cache of the host contains of shown. It lacks the Pods on the host's own nodes.
	healthy, shown, cached [places]int8
	desired                int8
	// counted and allowed are the host budget's status: currentHealthy and disruptionsAllowed.
	counted, allowed int8
	members          [places]memberBudget
}

// memberBudget is a leaf budget with its status.
type memberBudget struct {
	// decided is what leaf_budget will write, from what it read earlier. minAvailable is the spec. observed means that
	// the member's disruption controller has observed it.
	decided, minAvailable int8
	observed              bool
	// allowed is the status: disruptionsAllowed.
	allowed int8
}

func (w world) totalHealthy() int8 { return w.healthy[0] + w.healthy[1] + w.healthy[2] }

// model defines which steps are possible.
type model struct {
	// pods are the Pods by place, which are all healthy at first.
	pods [places]int8
	// members are the places with a leaf budget. hostEvicts allows evictions through the host's API.
	members    []int
	hostEvicts bool
	// required returns the minAvailable of a member.
	required func(w world, place int) int8
}

// requiredByController is the rule of requiredHealthy and countHealthyElsewhere. The interval between live counts only
// delays a step.
func requiredByController(w world, place int) int8 {
	host := &policyv1.PodDisruptionBudget{Status: policyv1.PodDisruptionBudgetStatus{ExpectedPods: 9, DesiredHealthy: int32(w.desired), CurrentHealthy: int32(w.counted)}}
	elsewhere := func(pods [places]int8) (sum int32) {
		for other := range places {
			if other != place {
				sum += int32(pods[other])
			}
		}
		return sum
	}
	var counts healthyCounts
	switch chooseCount(int32(w.cached[place]), elsewhere(w.cached), int32(w.counted)) {
	case noCountNeeded:
	case countInCache:
		counts.healthyElsewhere = elsewhere(w.cached)
	case countLive:
		counts.healthyElsewhere = elsewhere(w.shown)
	}
	return int8(requiredHealthy(host, counts))
}

// step is a possible step, in or for a place.
type step struct {
	what  string
	place int
}

// next calls visit with each possible step and the state after it.
func (m model) next(w world, visit func(step, world)) {
	add := func(what string, place int, change func(*world)) {
		after := w
		change(&after)
		visit(step{what, place}, after)
	}
	for place := range places {
		if m.hostEvicts && w.allowed > 0 && w.healthy[place] > 0 && w.shown[place] > 0 {
			// The host's API decrements the status before it deletes the Pod.
			add("the host evicts from", place, func(w *world) { w.allowed--; w.healthy[place]--; w.shown[place]-- })
		}
		if w.shown[place] != w.healthy[place] {
			add("the host shows the Pods of", place, func(w *world) { w.shown[place] = w.healthy[place] })
		}
		if place != onHostNode && w.cached[place] != w.shown[place] {
			add("the cache shows the Pods of", place, func(w *world) { w.cached[place] = w.shown[place] })
		}
		if w.healthy[place] < m.pods[place] {
			add("a Pod is replaced in", place, func(w *world) { w.healthy[place]++ })
		}
	}
	if counted := w.shown[0] + w.shown[1] + w.shown[2]; counted != w.counted || max(0, counted-w.desired) != w.allowed {
		add("the host counts in", onHostNode, func(w *world) { w.counted, w.allowed = counted, max(0, counted-w.desired) })
	}
	for _, place := range m.members {
		b := w.members[place]
		if b.observed && b.allowed > 0 && w.healthy[place] > 0 {
			add("eviction in member", place, func(w *world) { w.members[place].allowed--; w.healthy[place]-- })
		}
		if allowed := max(0, w.healthy[place]-b.minAvailable); !b.observed || allowed != b.allowed {
			add("count in member", place, func(w *world) { w.members[place].observed, w.members[place].allowed = true, allowed })
		}
		if required := m.required(w, place); required != b.decided {
			add("leaf_budget reads for member", place, func(w *world) { w.members[place].decided = required })
		}
		if b.decided != b.minAvailable {
			add("leaf_budget writes to member", place, func(w *world) {
				w.members[place].minAvailable, w.members[place].observed = b.decided, false
			})
		}
	}
}

// explore visits all reachable states, and returns the lowest number of healthy Pods, with a path to it.
func (m model) explore(start world) (lowest int8, path []string) {
	type visited struct {
		world
		step
		from int
	}
	visits, seen, worst := []visited{{world: start}}, map[world]struct{}{start: {}}, 0
	for i := 0; i < len(visits); i++ {
		w := visits[i].world
		if w.totalHealthy() < visits[worst].totalHealthy() {
			worst = i
		}
		m.next(w, func(s step, after world) {
			if _, known := seen[after]; !known {
				seen[after] = struct{}{}
				visits = append(visits, visited{after, s, i})
			}
		})
	}
	lowest = visits[worst].totalHealthy()
	for i := worst; i != 0; i = visits[i].from {
		path = append([]string{fmt.Sprintf("%s %d", visits[i].what, visits[i].place)}, path...)
	}
	return lowest, path
}

// settled returns a state in which everybody has observed everything.
func (m model) settled(desired int8) world {
	w := world{healthy: m.pods, shown: m.pods, cached: m.pods, desired: desired}
	w.cached[onHostNode] = 0
	w.counted = w.totalHealthy()
	w.allowed = max(0, w.counted-desired)
	for _, place := range m.members {
		required := m.required(w, place)
		w.members[place] = memberBudget{minAvailable: required, decided: required, observed: true, allowed: max(0, w.healthy[place]-required)}
	}
	return w
}

// If only one member has the Pods, its evictions never go below the budget, whatever is observed late.
func TestEvictionsInOneMember(t *testing.T) {
	for pods := int8(1); pods <= 4; pods++ {
		for desired := range pods + 1 {
			m := model{pods: [places]int8{inMemberA: pods}, members: []int{inMemberA}, required: requiredByController}
			if lowest, path := m.explore(m.settled(desired)); lowest != desired {
				t.Errorf("%d Pods, %d desired: %d healthy after %q, want exactly %d", pods, desired, lowest, path, desired)
			}
		}
	}
}

// If several places evict Pods at the same time, each of them may use the whole allowance, but none more than that.
func TestEvictionsInSeveralPlaces(t *testing.T) {
	for name, m := range map[string]model{
		"two members":                      {pods: [places]int8{inMemberA: 2, inMemberB: 1}, members: []int{inMemberA, inMemberB}},
		"two members, unequal":             {pods: [places]int8{inMemberA: 3, inMemberB: 1}, members: []int{inMemberA, inMemberB}},
		"a member and the host":            {pods: [places]int8{onHostNode: 2, inMemberA: 2}, members: []int{inMemberA}, hostEvicts: true},
		"a member and its Pods' host side": {pods: [places]int8{inMemberA: 3}, members: []int{inMemberA}, hostEvicts: true},
	} {
		t.Run(name, func(t *testing.T) {
			m.required = requiredByController
			for desired := int8(1); desired <= 4; desired++ {
				start := m.settled(desired)
				if start.counted < desired {
					continue
				}
				if lowest, path := m.explore(start); lowest < desired-start.allowed {
					t.Errorf("%d desired: %d healthy after %q, want at least %d", desired, lowest, path, desired-start.allowed)
				}
			}
		})
	}
}

// The model finds the mistake that doc.go warns of: a rule that subtracts what the host allows from what the cache counts.
func TestModelFindsDoubleCount(t *testing.T) {
	m := model{pods: [places]int8{inMemberA: 2}, members: []int{inMemberA}, required: func(w world, place int) int8 {
		return max(0, w.healthy[place]-w.allowed)
	}}
	if lowest, _ := m.explore(m.settled(1)); lowest > 0 {
		t.Errorf("%d Pods are healthy in the worst case, want 0", lowest)
	}
}

// The model finds the mistake of a rule that subtracts the member's Pods in the cache from what the host counts, instead of
// a live list: an eviction in the member would look like a healthy Pod elsewhere.
func TestModelFindsSubtraction(t *testing.T) {
	m := model{pods: [places]int8{inMemberA: 3}, members: []int{inMemberA}, required: func(w world, place int) int8 {
		return max(0, w.desired-max(0, w.counted-w.cached[place]))
	}}
	if lowest, _ := m.explore(m.settled(2)); lowest == 2 {
		t.Error("2 Pods are healthy in the worst case, want fewer")
	}
}
