package board

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// scale is the unit for values that are greater than or equal to from.
type scale struct {
	from, per float64
	name      string
}

// byUnit lists the scales of each Grafana unit, smallest first.
var byUnit = map[string][]scale{
	"":            {{0, 1, ""}},
	"none":        {{0, 1, ""}},
	"short":       {{0, 1, ""}, {1e3, 1e3, " K"}, {1e6, 1e6, " Mil"}},
	"percentunit": {{0, 0.01, "%"}},
	"ops":         perSecond("ops"),
	"cps":         perSecond("c"),
	"wps":         perSecond("wr"),
	"bytes":       {{0, 1, " B"}, {1 << 10, 1 << 10, " KiB"}, {1 << 20, 1 << 20, " MiB"}, {1 << 30, 1 << 30, " GiB"}},
	"s":           {{0, 1e-6, " µs"}, {1e-3, 1e-3, " ms"}, {1, 1, " s"}, {60, 60, " mins"}, {3600, 3600, " hours"}, {86400, 86400, " days"}},
}

func perSecond(what string) []scale {
	return []scale{{0, 1, " " + what + "/s"}, {1e3, 1e3, "K " + what + "/s"}, {1e6, 1e6, "M " + what + "/s"}}
}

func units() []string { return slices.Sorted(maps.Keys(byUnit)) }

// Text formats a value in a unit, with the given number of decimals. If decimals is negative, it
// uses three digits.
func Text(unit string, value float64, decimals int) string {
	scales := byUnit[unit]
	chosen := scales[0]
	for _, s := range scales {
		if math.Abs(value) >= s.from {
			chosen = s
		}
	}
	if value == 0 && unit == "s" {
		chosen = scale{per: 1, name: " s"}
	}
	scaled := value / chosen.per
	if decimals < 0 {
		decimals = 0
		if scaled != 0 {
			decimals = max(0, 2-int(math.Floor(math.Log10(math.Abs(scaled)))))
		}
		number := trimmed(strconv.FormatFloat(scaled, 'f', min(decimals, 3), 64))
		if number == "1" && chosen.from >= 60 && unit == "s" {
			return number + strings.TrimSuffix(chosen.name, "s")
		}
		return number + chosen.name
	}
	return strconv.FormatFloat(scaled, 'f', decimals, 64) + chosen.name
}

// trimmed removes trailing zeros after the decimal point.
func trimmed(number string) string {
	if !strings.Contains(number, ".") {
		return number
	}
	return strings.TrimSuffix(strings.TrimRight(number, "0"), ".")
}

// Ticks returns about the wanted number of round values from low to high, and their labels. The
// values are integers if the field has no decimals.
func (f Field) Ticks(low, high float64, wanted int) (values []float64, names []string) {
	step := roundStep(f.Unit, (high-low)/float64(max(1, wanted)))
	if f.Decimals != nil && *f.Decimals == 0 {
		step = max(1, step)
	}
	for i := math.Ceil(low/step - 1e-9); i*step <= high*(1+1e-9); i++ {
		value := i*step + 0 // not -0
		values, names = append(values, value), append(names, Text(f.Unit, value, -1))
	}
	return values, names
}

// roundStep returns the smallest round step that is not less than least. Round steps begin with
// 1, 2 or 5. For bytes, they are powers of two. For longer times, they are minutes and hours.
func roundStep(unit string, least float64) float64 {
	if least <= 0 {
		return 1
	}
	if unit == "bytes" {
		return math.Exp2(math.Ceil(math.Log2(least)))
	}
	if unit == "s" && least > 5 {
		for _, step := range []float64{10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 2 * 3600, 6 * 3600, 12 * 3600} {
			if step >= least {
				return step
			}
		}
		return 86400 * roundStep("none", least/86400)
	}
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, digit := range []float64{1, 2, 5} {
		if digit*power >= least*(1-1e-9) {
			return digit * power
		}
	}
	return 10 * power
}

// TimeTicks returns at most the wanted number of round times, and their labels.
func TimeTicks(from, to time.Time, wanted int) (values []time.Time, names []string) {
	least := to.Sub(from) / time.Duration(max(1, wanted))
	step, layout := 24*time.Hour, "01-02"
	for _, s := range []time.Duration{5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute,
		2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 3 * time.Hour, 12 * time.Hour} {
		if s >= least {
			step, layout = s, "15:04"
			if s < time.Minute {
				layout = "15:04:05"
			}
			break
		}
	}
	for at := from.Truncate(step); !at.After(to); at = at.Add(step) {
		if !at.Before(from) {
			values, names = append(values, at), append(names, at.UTC().Format(layout))
		}
	}
	return values, names
}
