package main

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Run is one measurement of one part of a scenario.
type Run struct {
	Scenario string `json:"scenario"`
	Part     string `json:"part"`
	Repeat   int    `json:"repeat"`
	Claims   int    `json:"claims"`
	Members  int    `json:"members"`
	// Load is the load average of the machine when the run began.
	Load string `json:"load"`
	// Busy is the average number of busy CPUs from the first claim to the end. If it is close to
	// the number of CPUs, the machine is the bottleneck.
	Busy float64 `json:"busy,omitempty"`
	busy *busy
	// Seconds is the time from the first claim's request to the last claim's binding. Rate is the
	// number of bindings per second in that time.
	Seconds float64 `json:"seconds,omitempty"`
	Rate    float64 `json:"rate,omitempty"`
	// Times are the measured times, in milliseconds. Each key names the start and the end.
	Times map[string]Distribution `json:"times,omitempty"`
	// Requests are the manager's requests.
	Requests []Count `json:"requests,omitempty"`
	// Reconciles is the number of reconciles per claim, by controller.
	Reconciles map[string]float64 `json:"reconciles,omitempty"`
	CPUSeconds float64            `json:"cpuSeconds,omitempty"`
	PeakMiB    float64            `json:"peakMiB,omitempty"`
	// Values are figures that are specific to the scenario. Series are values over time, in seconds.
	Values map[string]float64      `json:"values,omitempty"`
	Series map[string][][2]float64 `json:"series,omitempty"`
}

// writes returns the number of selected writes per claim.
func (r *Run) writes(pick func(Count) bool) (each float64) {
	for _, c := range r.Requests {
		if c.write() && !c.shared() && pick(c) {
			each += c.Each
		}
	}
	return each
}

func (r *Run) reads() (each float64) {
	for _, c := range r.Requests {
		if !c.write() && !c.shared() {
			each += c.Each
		}
	}
	return each
}

// Distribution describes the distribution of a time, in milliseconds.
type Distribution struct {
	N   int     `json:"n"`
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
	// Percentiles are the percentiles from 0 to 100, for plots.
	Percentiles []float64 `json:"percentiles,omitempty"`
}

func distribution(samples []time.Duration) Distribution {
	if len(samples) == 0 {
		return Distribution{}
	}
	slices.Sort(samples)
	at := func(percent float64) float64 {
		rank := int(math.Ceil(percent/100*float64(len(samples)))) - 1
		return float64(samples[min(max(rank, 0), len(samples)-1)].Microseconds()) / 1000
	}
	d := Distribution{N: len(samples), P50: at(50), P90: at(90), P99: at(99), Max: at(100)}
	for percent := range 101 {
		d.Percentiles = append(d.Percentiles, at(float64(percent)))
	}
	return d
}

// between returns the distribution of the time between two stages of the same objects, if both
// were observed. The time is zero if two watches observed the stages in reverse order.
func between(from, to map[string]time.Time) Distribution {
	var samples []time.Duration
	for name, end := range to {
		if begin, ok := from[name]; ok {
			samples = append(samples, max(0, end.Sub(begin)))
		}
	}
	return distribution(samples)
}

// span returns the first of the start times, and the seconds from it to the last of the end times.
func span(from, to map[string]time.Time) (first time.Time, seconds float64) {
	var last time.Time
	for _, at := range from {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	for _, at := range to {
		if at.After(last) {
			last = at
		}
	}
	return first, last.Sub(first).Seconds()
}

// progress returns the count over the time in seconds, as at most 200 points.
func progress(first time.Time, times map[string]time.Time) [][2]float64 {
	all := make([]time.Time, 0, len(times))
	for _, at := range times {
		all = append(all, at)
	}
	slices.SortFunc(all, time.Time.Compare)
	step := max(1, len(all)/200)
	var points [][2]float64
	for i := step - 1; i < len(all); i += step {
		points = append(points, [2]float64{all[i].Sub(first).Seconds(), float64(i + 1)})
	}
	return points
}

// spread returns median, minimum and maximum.
func spread(figures []float64) (median, least, most float64) {
	if len(figures) == 0 {
		return 0, 0, 0
	}
	sorted := slices.SortedFunc(slices.Values(figures), cmp.Compare[float64])
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[0], sorted[n-1]
}
