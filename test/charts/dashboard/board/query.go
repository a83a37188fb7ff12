package board

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Variable of a dashboard.
type Variable struct {
	Name       string          `json:"name"`
	Label      string          `json:"label"`
	Type       string          `json:"type"`
	Query      json.RawMessage `json:"query"`
	IncludeAll bool            `json:"includeAll"`
	AllValue   string          `json:"allValue"`
	Current    struct {
		Value any `json:"value"`
	} `json:"current"`
}

// all is the value of a variable of which all are chosen.
const all = "$__all"

// variable is $name, ${name} or ${name:format}.
var variable = regexp.MustCompile(`\$(\w+)|\$\{(\w+)(?::\w+)?\}`)

// Values are what variables represent.
type Values map[string]string

// Values of the dashboard's own variables as it is opened, and of Grafana's for queries
// of that step, on metrics that are read at that interval.
func (d *Dashboard) Values(step, scrape, length time.Duration) (Values, error) {
	values := Values{
		"__interval":      prometheusDuration(step),
		"__rate_interval": prometheusDuration(RateInterval(step, scrape)),
		"__range":         prometheusDuration(length),
	}
	for _, v := range d.Templating.List {
		if v.Type == "datasource" {
			continue // no query has it
		}
		chosen, isList := v.Current.Value.([]any)
		if !v.IncludeAll || v.AllValue == "" || !isList || !slices.Equal(chosen, []any{all}) {
			return nil, fmt.Errorf("variable %s: only one of which all are chosen, with a value for all, is known", v.Name)
		}
		values[v.Name] = v.AllValue
	}
	return values, nil
}

// labelValues is how a variable asks for the values of a label.
var labelValues = regexp.MustCompile(`^label_values\(\s*(\w+)\s*,\s*(\w+)\s*\)$`)

// LabelValues is the metric and the label whose values a variable offers; false if it
// is not of that kind.
func (v Variable) LabelValues() (metric, label string, ok bool) {
	var query struct {
		Query string `json:"query"`
	}
	if v.Type != "query" || json.Unmarshal(v.Query, &query) != nil {
		return "", "", false
	}
	match := labelValues.FindStringSubmatch(query.Query)
	if match == nil {
		return "", "", false
	}
	return match[1], match[2], true
}

// Expand puts values into a query in the place of variables.
func (v Values) Expand(query string) (string, error) {
	var unknown []string
	expanded := variable.ReplaceAllStringFunc(query, func(found string) string {
		match := variable.FindStringSubmatch(found)
		value, ok := v[match[1]+match[2]]
		if !ok {
			unknown = append(unknown, found)
		}
		return value
	})
	if len(unknown) > 0 {
		return "", fmt.Errorf("query %s: there is no variable %s", query, strings.Join(unknown, ", "))
	}
	return expanded, nil
}

// Interval is the time between the points of a query: no less than metrics are read, and
// no more points than a panel has pixels. Where Grafana takes the next of a list of
// round times, this takes the next second.
func Interval(length, scrape time.Duration, pixels float64) time.Duration {
	step := time.Duration(float64(length)/pixels) + time.Second - 1
	return max(scrape, step.Truncate(time.Second))
}

// RateInterval is Grafana's $__rate_interval: long enough for a rate to have two points
// though one is missing.
func RateInterval(step, scrape time.Duration) time.Duration {
	return max(step+scrape, 4*scrape)
}

func prometheusDuration(d time.Duration) string {
	return fmt.Sprintf("%dms", d.Milliseconds())
}

// label is {{name}} in a legend.
var label = regexp.MustCompile(`\{\{\s*(.+?)\s*\}\}`)

// auto is the legend of a query that has none of its own.
const auto = "__auto"

// Legend is the name of one of a target's series, by its labels: those that it lacks
// are empty in it.
func (t Target) Legend(labels map[string]string) string {
	if t.LegendFormat != "" && t.LegendFormat != auto {
		name := label.ReplaceAllStringFunc(t.LegendFormat, func(found string) string {
			return labels[label.FindStringSubmatch(found)[1]]
		})
		return strings.TrimSpace(name)
	}
	pairs := make([]string, 0, len(labels))
	for name, value := range labels {
		if name != "__name__" {
			pairs = append(pairs, fmt.Sprintf("%s=%q", name, value))
		}
	}
	if len(pairs) == 0 && labels["__name__"] == "" {
		return t.Expr
	}
	slices.Sort(pairs)
	return labels["__name__"] + "{" + strings.Join(pairs, ", ") + "}"
}
