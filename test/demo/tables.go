package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/xylem-io/xylem/test/controlplane"
)

// figures are the measurements.
type figures struct {
	scheduler string
	// creation and deletion are Xylem's requests to each cluster for one claim and one Pod, by
	// column.
	creation, deletion []controlplane.Requests
	across, native     timing
	// promise: bound counts from the claim's creation, and running from the Pod's.
	promise timing
}

// printTable prints a kubectl command and its output.
func (d *demo) printTable(ctx context.Context, v *view, args ...string) error {
	out, err := d.kubectl(ctx, v, args...)
	if err != nil {
		return err
	}
	d.prompt(v, "kubectl "+strings.Join(args, " "))
	for _, line := range narrow(out) {
		d.out.line("   %s", line)
	}
	return nil
}

// showTables prints the current objects of host and member, as kubectl prints them.
func (d *demo) showTables(ctx context.Context) error {
	d.out.section("What kubectl shows on each side (columns without a value are left out)")
	for _, v := range []*view{d.host, d.members[0]} {
		for _, kind := range []string{"pod", "pvc"} {
			if err := d.printTable(ctx, v, "get", kind, "-n", space, "-o", "wide"); err != nil {
				return err
			}
		}
	}
	return nil
}

// summary ends the report: checks, times, writes.
func (d *demo) summary(took time.Duration, complete bool) {
	d.checks.complete = complete
	d.out.section("Summary")
	for _, line := range d.checks.table(d.out) {
		d.out.line("   %s", line)
	}
	if d.figures.native != (timing{}) {
		d.out.line("")
		for _, line := range table([][]string{
			{"from the claim's creation to", "claim Bound", "Pod Running"},
			{"across clusters, seen in the host", seconds(d.figures.across.bound), seconds(d.figures.across.running)},
			{"in one cluster, " + pinned + " alone", seconds(d.figures.native.bound), seconds(d.figures.native.running)},
			{"a promise across clusters (Running: from the Pod's creation)", seconds(d.figures.promise.bound), seconds(d.figures.promise.running)},
		}) {
			d.out.line("   %s", line)
		}
		d.out.line("   (the scheduler looks once a second whether a claim is Bound: most of the way to Running, either way)")
	}
	if d.figures.deletion != nil {
		d.out.line("")
		for _, line := range writesTable(d.timeline.columns, d.figures.creation, d.figures.deletion) {
			d.out.line("   %s", line)
		}
	}
	d.out.line("")
	verdict := d.out.style(green, fmt.Sprintf("All %d checks hold", len(d.checks.list)))
	if !complete || !d.checks.passed() {
		verdict = d.out.style(red, "The demo FAILED")
	}
	d.out.line("%s, after %d s. Control plane clients are allowed 2000 requests a second.", verdict, int(took.Seconds()))
}

// writesTable prints the writes for one claim and one Pod, by cluster.
func writesTable(names []string, creation, deletion []controlplane.Requests) []string {
	lines := []string{"API writes of Xylem for one claim and one Pod (from the audit logs; Leases left out)"}
	for i, name := range names {
		if len(writes(creation[i]))+len(writes(deletion[i])) == 0 {
			lines = append(lines, fmt.Sprintf("%-10s none", name))
			continue
		}
		for _, part := range []struct {
			what     string
			requests controlplane.Requests
		}{{"apply to Running", creation[i]}, {"delete to gone", deletion[i]}} {
			n := len(writes(part.requests))
			if n == 0 {
				lines = append(lines, fmt.Sprintf("%-10s %-17s %3d", name, part.what, n))
				continue
			}
			text := wrap(breakdown(part.requests), tableWidth-38)
			lines = append(lines, fmt.Sprintf("%-10s %-17s %3d  %s", name, part.what, n, text[0]))
			for _, more := range text[1:] {
				lines = append(lines, strings.Repeat(" ", 34)+more)
			}
		}
	}
	return lines
}
