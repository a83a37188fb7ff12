package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xylem-io/xylem/test/controlplane/kubebin"
)

// row is one run: the versions of the host and the members, and the test that runs on them.
type row struct {
	host   string
	member []string
	what   string
	pkg    string
	args   []string
	env    []string

	took   time.Duration
	failed error
}

func (r *row) members() string { return strings.Join(r.member, ", ") }

// mainStories selects the stories about the namespace rules and the main flow, except the one about
// the placement rate of many claims, which does not depend on the version.
var mainStories = []string{
	"-ginkgo.focus-file=namespaces_test.go", "-ginkgo.focus-file=flow_test.go", "-ginkgo.skip=is placed as fast as the host binds",
}

// matrix returns the runs for the minor versions: each version in all clusters, the newest host
// with older members, the oldest host with newer members, and an upgrade from each older version.
// If all is false, only the main stories run.
func matrix(versions []string, all bool) []row {
	told := row{what: "stories: rules, main flow", args: mainStories}
	if all {
		told = row{what: "stories: all"}
	}
	ordered := slices.Clone(versions)
	slices.SortFunc(ordered, func(a, b string) int { return kubebin.CompareVersions(b, a) })
	newest, oldest := ordered[0], ordered[len(ordered)-1]
	var rows []row
	for _, v := range ordered {
		rows = append(rows, told.on(v, v, v))
	}
	if newest == oldest {
		return rows
	}
	rows = append(rows, told.on(newest, ordered[1], oldest), told.on(oldest, newest, ordered[1]))
	for _, v := range ordered[1:] {
		rows = append(rows, row{
			host: v, member: []string{v, v}, what: "upgrade to " + newest + " under load",
			pkg: "./test/integration/upgrade", env: []string{"XYLEM_UPGRADE_FROM=" + v},
		})
	}
	return rows
}

// on returns a run of the stories on these versions.
func (r row) on(host string, members ...string) row {
	r.host, r.member, r.pkg = host, members, "./test/integration/stories"
	r.env = []string{"XYLEM_HOST_VERSION=" + host, "XYLEM_MEMBER_VERSIONS=" + strings.Join(members, ",")}
	return r
}

// tableOf returns the runs as a Markdown table.
func tableOf(rows []row) string {
	var b strings.Builder
	b.WriteString("| Host | Members | Ran | Result | Seconds |\n|---|---|---|---|---|\n")
	for _, r := range rows {
		result, seconds := "passed", fmt.Sprintf("%.0f", r.took.Seconds())
		switch {
		case r.failed != nil:
			result = "**failed**"
		case r.took == 0:
			result, seconds = "not run", ""
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.host, r.members(), r.what, result, seconds)
	}
	return b.String()
}
