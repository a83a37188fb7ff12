package pods

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/test/model/api"
)

// Model contains what all worlds have in common.
type Model struct {
	objects *objects
	ids     map[world]int
	worlds  []world
	from    []int
	by      []string
	// next contains the worlds after each world's moves, without disruptions. steps contains root_pod's
	// steps, which do not depend on the budget.
	next     [][]int
	steps    map[world]*run
	Result   Result
	findings map[string]*Finding
}

// Result is the result of a check.
type Result struct {
	// Worlds, Moves and Steps are the numbers of visited worlds, of moves between them, and of root_pod's
	// moves. Ends is the number of worlds without moves.
	Worlds, Moves, Steps, Ends int
	// Findings are the findings by description.
	Findings map[string]*Finding
}

// Finding is a defect, with the number of worlds that show it and the path to the first such world.
type Finding struct {
	Worlds int
	Trace  string
}

// String returns a summary.
func (r Result) String() string {
	return fmt.Sprintf("%d worlds, %d moves, %d of them root_pod's; %d worlds without moves", r.Worlds, r.Moves, r.Steps, r.Ends)
}

// Check visits all worlds with at most the given number of disruptions on the path to them.
func Check(ctx context.Context, disruptions uint8) Result {
	m := &Model{objects: newObjects(), ids: map[world]int{}, steps: map[world]*run{}, findings: map[string]*Finding{}}
	for _, waits := range []bool{true, false} {
		w := world{waits: waits, budget: disruptions}
		w.state[root], w.state[claim] = m.objects.keep(newPod(rootUIDs[0])), m.objects.keep(newClaim(claimUIDs[0]))
		m.visit(w, -1, fmt.Sprintf("a Pod and its claim; the member's class waits for a consumer: %v", waits))
		if waits {
			change(m, &w, root, func(pod *corev1.Pod) { pod.Spec.NodeName = here.NodeName })
			m.visit(w, -1, "a Pod with spec.nodeName and its claim; the member's class waits for a consumer: true")
		}
	}
	for at := 0; at < len(m.worlds); at++ {
		m.expand(ctx, at)
	}
	m.endless()
	m.Result.Worlds, m.Result.Findings = len(m.worlds), m.findings
	return m.Result
}

// endless finds worlds that repeat without a disruption. It removes, again and again, the worlds without
// remaining moves.
func (m *Model) endless() {
	before, moves := make([][]int, len(m.worlds)), make([]int, len(m.worlds))
	var ended []int
	for at, next := range m.next {
		if moves[at] = len(next); len(next) == 0 {
			ended = append(ended, at)
		}
		for _, to := range next {
			before[to] = append(before[to], at)
		}
	}
	for len(ended) > 0 {
		last := ended[len(ended)-1]
		ended = ended[:len(ended)-1]
		for _, at := range before[last] {
			if moves[at]--; moves[at] == 0 {
				ended = append(ended, at)
			}
		}
	}
	for at := range moves {
		if moves[at] > 0 {
			m.find(at, "I5: the same worlds are visited forever", "")
		}
	}
}

// visit adds a world, unless it is known, and returns its index.
func (m *Model) visit(w world, from int, by string) int {
	pod, there := get[*corev1.Pod](m, w.state, root)
	w.recorded = w.started > 0 && (w.recorded || there && pod.UID == rootUIDs[w.started-1] && podstatus.HadLeafPod(pod))
	if at, known := m.ids[w]; known {
		return at
	}
	at := len(m.worlds)
	m.ids[w] = at
	m.worlds, m.from, m.by = append(m.worlds, w), append(m.from, from), append(m.by, by)
	return at
}

// expand makes all possible moves from a world.
func (m *Model) expand(ctx context.Context, at int) {
	w := m.worlds[at]
	unbudgeted := w
	unbudgeted.budget = 0
	step, known := m.steps[unbudgeted]
	if !known {
		step = m.step(ctx, unbudgeted)
		m.steps[unbudgeted] = step
	}
	for _, violation := range step.violations {
		m.find(at, violation, step.wrote)
	}
	next := m.kubernetes(w)
	if step.wrote != "" {
		to := w
		to.state = step.world.state
		next = append(next, move{"root_pod: " + step.wrote, to})
		m.Result.Steps++
	}
	var after []int
	for _, move := range next {
		after = append(after, m.visit(move.to, at, move.name))
	}
	m.next = append(m.next, after)
	m.Result.Moves += len(next)
	for _, move := range m.disruptions(w) {
		m.visit(move.to, at, "DISRUPTION: "+move.name)
	}
	if len(next) == 0 {
		m.Result.Ends++
		for _, what := range m.unsettled(w, step.reported) {
			m.find(at, what, "")
		}
	}
}

// unsettled returns what is wrong in a world without moves.
func (m *Model) unsettled(w world, reported bool) []string {
	pod, hasPod := get[*corev1.Pod](m, w.state, root)
	there, hasLeaf := get[*corev1.Pod](m, w.state, leaf)
	mine := hasLeaf && hasPod && there.Annotations[v1alpha1.AnnotationRootUID] == string(pod.UID)
	reported = reported || hasPod && podstatus.PushedStatus(pod) == corev1.ConditionFalse
	var found []string
	if hasLeaf && !mine {
		found = append(found, "a leaf is left although its Pod is gone")
	}
	if hasPod && pod.DeletionTimestamp != nil {
		found = append(found, "a deleted Pod is left")
	}
	if hasPod && pod.DeletionTimestamp == nil && pod.Spec.NodeName == here.NodeName && !podstatus.IsPodFinished(pod) && !mine && !reported {
		found = append(found, "a Pod on the virtual node has no leaf, and no reason is reported (I6)")
	}
	if mine && !podstatus.IsPodFinished(pod) && podstatus.RecordedLeafUID(pod) != there.UID {
		found = append(found, "a Pod does not record its leaf")
	}
	return found
}

func (m *Model) find(at int, what, last string) {
	f := m.findings[what]
	if f == nil {
		f = &Finding{}
		m.findings[what] = f
		f.Trace = strings.Join(append(api.Trace(at, m.from, m.by, last), "    "+m.describe(m.worlds[at])), "\n")
	}
	f.Worlds++
}
