package main

import (
	"fmt"
	"slices"
)

// Goal is a performance goal and the figure measured for it.
type Goal struct {
	Name     string  `json:"name"`
	Limit    string  `json:"limit"`
	Figure   string  `json:"figure"`
	Value    float64 `json:"value"`
	Measured bool    `json:"measured"`
	Met      bool    `json:"met"`
}

func (g Goal) verdict() string {
	switch {
	case !g.Measured:
		return "-"
	case g.Met:
		return "met"
	default:
		return "NOT MET"
	}
}

// The limits of the goals.
const (
	maxAddedP50   = 150.0 // ms
	maxAddedP99   = 1000.0
	maxLeafToRoot = 150.0
	minOfFloor    = 0.35
	maxOfDriver   = 1.3
	maxOfPlain    = 1.1
	maxCreate     = 6.0 // writes per volume
	maxDelete     = 4.0
	maxProbes     = 1.05 // per member in 10 s: one, plus a margin for one at the edge
	maxHeapEach   = 10.0 // KiB per volume
	maxHeapMember = 8.0  // MiB per idle member
	maxRestart    = 20.0 // s
	maxIsolation  = 1.10
	maxHeapGrowth = 1.10
	// of objects that do not concern Xylem
	maxHostPod   = 0.7  // KiB
	maxMemberPod = 1.0  // KiB
	maxChange    = 0.15 // ms of CPU time
	maxEvents    = 15.0 // MiB of resident memory
	maxAdmission = 1.0  // ms that 200 registrations with rules add, compared with two
	maxSteering  = 5.0  // ms that they add for a Pod that tolerates virtual nodes
)

// The sizes of the bursts that have goals.
var (
	burstOfTheGoal = size{1000, 2}
	plainOfTheGoal = size{100, 1}
)

// figures returns the median and the spread of a figure over all repeats of a part.
func (r *report) figures(runs []*Run, of func(*Run) (float64, bool)) (median float64, text string, ok bool) {
	var all []float64
	for _, run := range runs {
		if v, there := of(run); there {
			all = append(all, v)
		}
	}
	median, least, most := spread(all)
	text = fmt.Sprintf("%.3g", median)
	if len(all) > 1 {
		text = fmt.Sprintf("%.3g (%.3g to %.3g)", median, least, most)
	}
	return median, text, len(all) > 0
}

func time50(what string) func(*Run) (float64, bool) {
	return func(run *Run) (float64, bool) { d, ok := run.Times[what]; return d.P50, ok }
}

func time99(what string) func(*Run) (float64, bool) {
	return func(run *Run) (float64, bool) { d, ok := run.Times[what]; return d.P99, ok }
}

func value(name string) func(*Run) (float64, bool) {
	return func(run *Run) (float64, bool) { v, ok := run.Values[name]; return v, ok }
}

// beside computes a figure from each run and its counterpart: the run of another part with the
// same repeat and size.
func (r *report) beside(scenario, part, other string, of func(run, other *Run) float64) func(*Run) (float64, bool) {
	return func(run *Run) (float64, bool) {
		for _, o := range r.find(scenario, other) {
			if run.Part == part && o.Repeat == run.Repeat && o.Claims == run.Claims {
				return of(run, o), true
			}
		}
		return 0, false
	}
}

// judge compares the measurements with the goals.
func (r *report) judge() []Goal {
	var goals []Goal
	atMost := func(name string, limit float64, unit string, runs []*Run, of func(*Run) (float64, bool)) {
		v, text, ok := r.figures(runs, of)
		goals = append(goals, Goal{Name: name, Limit: fmt.Sprintf("<= %g %s", limit, unit), Figure: text, Value: v, Measured: ok, Met: ok && v <= limit})
	}
	atLeast := func(name string, limit float64, runs []*Run, of func(*Run) (float64, bool)) {
		v, text, ok := r.figures(runs, of)
		goals = append(goals, Goal{Name: name, Limit: fmt.Sprintf(">= %g", limit), Figure: text, Value: v, Measured: ok, Met: ok && v >= limit})
	}
	mirror, deleted := r.find(latencyName, partMirror), r.find(latencyName, partMirror+partDelete)
	added := func(of func(*Run) (float64, bool)) func(*Run) (float64, bool) {
		return r.beside(latencyName, partMirror, partNative, func(run, native *Run) float64 {
			a, _ := of(run)
			b, _ := of(native)
			return a - b
		})
	}
	atMost("added to native, claim created to Bound, p50", maxAddedP50, "ms", mirror, added(time50(askedBound)))
	atMost("added to native, claim created to Bound, p99", maxAddedP99, "ms", mirror, added(time99(askedBound)))
	atMost("leaf Bound to host Bound, p50", maxLeafToRoot, "ms", mirror, time50(leafBoundBound))
	bursts := func(part string, s size) []*Run {
		return slices.DeleteFunc(r.find(burstName, part), func(run *Run) bool {
			return size{run.Claims, run.Members} != s && r.Settings["quick"] != "true"
		})
	}
	longer := func(run, other *Run) float64 { return run.Seconds / other.Seconds }
	burst := bursts(partMirror, burstOfTheGoal)
	atLeast("burst of 1,000: binding rate relative to the floor's", minOfFloor, burst, r.beside(burstName, partMirror, partFloor, func(run, floor *Run) float64 { return run.Rate / floor.Rate }))
	atMost("burst of 1,000: time relative to the driver's", maxOfDriver, "times", burst, r.beside(burstName, partMirror, partDriver, longer))
	atMost("burst of 100: time relative to a plain mirror's", maxOfPlain, "times", bursts(partMirror, plainOfTheGoal), r.beside(burstName, partMirror, partPlain, longer))
	atMost("deletion of 100: time relative to a plain mirror's", maxOfPlain, "times", bursts(partMirror+partDelete, plainOfTheGoal), r.beside(burstName, partMirror+partDelete, partPlain+partDelete, longer))
	ofVolume := func(c Count) bool { return !c.ofPod() }
	perVolume := func(pick func(Count) bool) func(*Run) (float64, bool) {
		return func(run *Run) (float64, bool) { return run.writes(pick), len(run.Requests) > 0 }
	}
	atMost("writes to create a volume", maxCreate, "", mirror, perVolume(ofVolume))
	atMost("writes to delete a volume", maxDelete, "", deleted, perVolume(ofVolume))
	full := r.find(scaleName, partFull)
	if len(full) == 0 {
		full = r.find(scaleName, partRestart)
	}
	atRest := func(scenario string, runs []*Run) {
		atMost("idle ("+scenario+"): writes", 0, "", runs, value(restWrites))
		atMost("idle ("+scenario+"): probes per member in 10 s", maxProbes, "", runs, value(restProbes))
	}
	atRest(churnName, r.find(churnName, partRest))
	atRest(scaleName, full)
	atMost("churn: live heap in the last third, relative to the middle third", maxHeapGrowth, "times", r.find(churnName, partChurn), value(heapGrowth))
	atMost("live heap per mirrored volume", maxHeapEach, "KiB", full, value(heapEach))
	atMost("live heap per idle member", maxHeapMember, "MiB", r.find(scaleName, partIdle), value(heapMember))
	atMost("restart to settled, 1,000 volumes in each of 24 members", maxRestart, "s", r.find(scaleName, partRestart), value(restartSeconds))
	atMost("one member black-holed: p99 of the others, relative to all healthy", maxIsolation, "times", r.find(isolationName, partBlackhole), r.beside(isolationName, partBlackhole, partAllWell, func(run, well *Run) float64 {
		return run.Times[askedBound].P99 / well.Times[askedBound].P99
	}))
	r.judgeOthers(atMost)
	return goals
}

// judgeOthers compares what objects cost with which Xylem has nothing to do with the goals.
func (r *report) judgeOthers(atMost func(name string, limit float64, unit string, runs []*Run, of func(*Run) (float64, bool))) {
	others := func(part string) []*Run { return r.find(foreignName, part) }
	atMost("live heap for each Pod on the host's own nodes", maxHostPod, "KiB", others(partHostPods), value(heapForeign))
	atMost("CPU time for a status change of such a Pod", maxChange, "ms", others(partHostPods), value(cpuForeign))
	atMost("live heap for each of a member's other Pods", maxMemberPod, "KiB", others(partMemberPods), value(heapForeign))
	atMost("memory for a member's Warning events about its other Pods", maxEvents, "MiB", others(partMemberEvents), value(residentGrown))
	many := r.find(admissionName, partManyRules)
	grown := func(what string) func(*Run) (float64, bool) {
		return r.beside(admissionName, partManyRules, partFewRules, func(run, few *Run) float64 { return run.Values[what] - few.Values[what] })
	}
	atMost("200 registrations with rules, compared with two: "+bindingCPU, maxAdmission, "ms more", many, grown(bindingCPU))
	atMost("200 registrations with rules, compared with two: "+otherPodCPU, maxAdmission, "ms more", many, grown(otherPodCPU))
	atMost("200 registrations with rules, compared with two: "+virtualPodCPU, maxSteering, "ms more", many, grown(virtualPodCPU))
}
