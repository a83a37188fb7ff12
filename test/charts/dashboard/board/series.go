package board

import (
	"maps"
	"math"
	"slices"
	"time"
)

// Point is a point of a series. NaN means that the value is missing.
type Point struct {
	At    time.Time
	Value float64
}

// Series is a query's result for one set of labels.
type Series struct {
	Name   string
	Points []Point
}

// There reports whether the series has at least one value.
func (s Series) There() bool {
	_, ok := s.Calculate("lastNotNull")
	return ok
}

var calculate = map[string]func(values []float64) float64{
	"lastNotNull": func(v []float64) float64 { return v[len(v)-1] },
	"max":         slices.Max[[]float64],
	"mean": func(v []float64) float64 {
		sum := 0.0
		for _, one := range v {
			sum += one
		}
		return sum / float64(len(v))
	},
}

func calculations() []string { return slices.Sorted(maps.Keys(calculate)) }

// Calculate reduces the values to one value, or returns false if the series has no values.
func (s Series) Calculate(name string) (float64, bool) {
	var values []float64
	for _, p := range s.Points {
		if !math.IsNaN(p.Value) {
			values = append(values, p.Value)
		}
	}
	if len(values) == 0 {
		return 0, false
	}
	return calculate[name](values), true
}

// Parts splits a series at its gaps: at NaN values, and where points are more than one and a half
// steps apart.
func (s Series) Parts(step time.Duration) [][]Point {
	var all [][]Point
	var part []Point
	for _, point := range s.Points {
		if len(part) > 0 && (math.IsNaN(point.Value) || point.At.Sub(part[len(part)-1].At) > step*3/2) {
			all, part = append(all, part), nil
		}
		if !math.IsNaN(point.Value) {
			part = append(part, point)
		}
	}
	if len(part) > 0 {
		all = append(all, part)
	}
	return all
}

// Run is a period in which a value did not change.
type Run struct {
	From, To time.Time
	Value    float64
}

// Runs returns the runs of a series. Each run lasts until the next one starts, or until the last
// point before a gap.
func (s Series) Runs(step time.Duration) []Run {
	var all []Run
	for _, part := range s.Parts(step) {
		for i, point := range part {
			if i > 0 {
				all[len(all)-1].To = point.At
			}
			if i == 0 || math.Abs(point.Value-all[len(all)-1].Value) > 0 {
				all = append(all, Run{From: point.At, To: point.At, Value: point.Value})
			}
		}
	}
	return all
}

// Stack adds each series to the sum of the previous ones. floors contains the sums below each
// series.
func Stack(series []Series) (stacked, floors []Series) {
	sums := map[time.Time]float64{}
	for _, s := range series {
		var top, floor []Point
		for _, point := range s.Points {
			if math.IsNaN(point.Value) {
				continue
			}
			floor = append(floor, Point{At: point.At, Value: sums[point.At]})
			sums[point.At] += point.Value
			top = append(top, Point{At: point.At, Value: sums[point.At]})
		}
		stacked = append(stacked, Series{Name: s.Name, Points: top})
		floors = append(floors, Series{Name: s.Name, Points: floor})
	}
	return stacked, floors
}
