package board

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Variable is a variable of a dashboard.
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

// all is the value of a Grafana variable if all of its options are selected.
const all = "$__all"

// variable matches a variable in a query: $name, ${name} or ${name:format}.
var variable = regexp.MustCompile(`\$(\w+)|\$\{(\w+)(?::\w+)?\}`)

// Values maps the names of variables to their values.
type Values map[string]string

// Values returns the initial values of the dashboard's variables, and the values of Grafana's
// own variables for queries with the given step over the given length. scrape is the interval
// at which the metrics are scraped.
func (d *Dashboard) Values(step, scrape, length time.Duration) (Values, error) {
	values := Values{
		"__interval":      prometheusDuration(step),
		"__rate_interval": prometheusDuration(RateInterval(step, scrape)),
		"__range":         prometheusDuration(length),
	}
	for _, v := range d.Templating.List {
		if v.Type == "datasource" {
			continue // no query uses it
		}
		chosen, isList := v.Current.Value.([]any)
		if !v.IncludeAll || v.AllValue == "" || !isList || !slices.Equal(chosen, []any{all}) {
			return nil, fmt.Errorf("variable %s: all its options must be selected, and it must have an allValue", v.Name)
		}
		values[v.Name] = v.AllValue
	}
	return values, nil
}

// labelValues matches a variable's query for the values of a label.
var labelValues = regexp.MustCompile(`^label_values\(\s*(\w+)\s*,\s*(\w+)\s*\)$`)

// LabelValues returns the metric and the label whose values a variable offers, or false if the
// variable does not offer label values.
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

// Expand replaces the variables in a query with their values.
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
		return "", fmt.Errorf("query %s: unknown variable %s", query, strings.Join(unknown, ", "))
	}
	return expanded, nil
}

// Interval returns the time between the points of a query: at least the scrape interval, and at
// most one point per pixel. Grafana rounds up to the next value in a list of round durations.
// This function rounds up to full seconds.
func Interval(length, scrape time.Duration, pixels float64) time.Duration {
	step := time.Duration(float64(length)/pixels) + time.Second - 1
	return max(scrape, step.Truncate(time.Second))
}

// RateInterval returns Grafana's $__rate_interval: long enough for a rate to have two points
// even if one is missing.
func RateInterval(step, scrape time.Duration) time.Duration {
	return max(step+scrape, 4*scrape)
}

func prometheusDuration(d time.Duration) string {
	return fmt.Sprintf("%dms", d.Milliseconds())
}

// label matches {{name}} in a legend.
var label = regexp.MustCompile(`\{\{\s*(.+?)\s*\}\}`)

// auto is the legend format of a query without its own legend.
const auto = "__auto"

// Legend returns the name of the target's series with the given labels. Missing labels are empty.
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
