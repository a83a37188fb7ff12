package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// metric is a metric that the manager defines.
type metric struct{ name, kind, help, labels string }

func metricsPage() ([]byte, error) {
	_, files, err := sources("internal")
	if err != nil {
		return nil, err
	}
	var found []metric
	var wrong []error
	for _, file := range files {
		labels := listsOf(file)
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if m, is := metricOf(call, labels); is {
					found = append(found, m)
					if m.help == "" || m.labels == "" {
						wrong = append(wrong, fmt.Errorf("metric %s lacks a help text, or its labels are not a list", m.name))
					}
				}
			}
			return true
		})
	}
	slices.SortFunc(found, func(a, b metric) int { return strings.Compare(a.name, b.name) })
	var b bytes.Buffer
	b.WriteString(`# Metrics

` + "`" + `make generate` + "`" + ` writes this page from the metrics' definitions.

- ` + "`" + `cluster` + "`" + ` is a registration's name. A member's series are deleted with its registration.
- ` + "`" + `controller` + "`" + `, ` + "`" + `side` + "`" + `, ` + "`" + `kind` + "`" + `, ` + "`" + `verb` + "`" + ` and ` + "`" + `result` + "`" + ` each have only a few values.
- Only the leading replica has the members' series. Every replica counts its heartbeats.
- The manager also serves controller-runtime's metrics for the host's controllers (` + "`" + `controller_runtime_*` + "`" + `, ` + "`" + `workqueue_*` + "`" + `,
  ` + "`" + `rest_client_*` + "`" + `), and metrics for Go and the process.

Provisioning latency starts when Xylem records the member on the claim (` + "`" + `xylem.io/placed-in` + "`" + `), not at the claim's creation,
because a claim may wait for a Pod for days. The process that placed the claim measures the latency once. A restart drops
measurements in progress. For a promise, Xylem measures each disk that is provisioned.

| Metric | Type | Labels | Meaning |
|---|---|---|---|
`)
	for _, m := range found {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.name, m.kind, m.labels, cell(m.help))
	}
	return b.Bytes(), errors.Join(wrong...)
}

// metricOf parses a call such as NewGaugeVec(GaugeOpts{…}, labels), or NewDesc(name, help,
// labels, nil).
func metricOf(call *ast.CallExpr, lists map[string][]string) (m metric, is bool) {
	constructor := selected(call.Fun)
	if constructor == "NewDesc" && len(call.Args) == 4 {
		m.kind = "gauge"
		m.name, _ = literal(call.Args[0])
		m.help, _ = literal(call.Args[1])
		m.labels = strings.Join(list(call.Args[2], lists), ", ")
		return m, true
	}
	kind, isVector := strings.CutSuffix(strings.TrimPrefix(constructor, "New"), "Vec")
	if !isVector || len(call.Args) != 2 {
		return m, false
	}
	options, ok := call.Args[0].(*ast.CompositeLit)
	if !ok {
		return m, false
	}
	m.kind = strings.ToLower(kind)
	for _, field := range options.Elts {
		if pair, ok := field.(*ast.KeyValueExpr); ok {
			switch selected(pair.Key) {
			case "Name":
				m.name, _ = literal(pair.Value)
			case "Help":
				m.help, _ = literal(pair.Value)
			}
		}
	}
	m.labels = strings.Join(list(call.Args[1], lists), ", ")
	return m, m.name != ""
}

// listsOf returns the file's variables that are lists of strings.
func listsOf(file *ast.File) map[string][]string {
	lists := map[string][]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Names) == 1 && len(v.Values) == 1 {
			if values := list(v.Values[0], nil); values != nil {
				lists[v.Names[0].Name] = values
			}
		}
		return true
	})
	return lists
}

func list(e ast.Expr, lists map[string][]string) []string {
	if lists != nil && selected(e) != "" {
		return lists[selected(e)]
	}
	composite, ok := e.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	var values []string
	for _, element := range composite.Elts {
		value, ok := literal(element)
		if !ok {
			return nil
		}
		values = append(values, "`"+value+"`")
	}
	return values
}
