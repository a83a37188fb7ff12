package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/xylem-io/xylem/test/controlplane"
)

// figures are the times and requests that the demo measures.
type figures struct {
	scheduler string
	// creation and deletion are Xylem's requests to each cluster for one claim and one Pod, by
	// column.
	creation, deletion []controlplane.Requests
	// copies are the requests for snapshots, and for claims with a source.
	copies         []spending
	across, native timing
	// promise contains a promise's times: from the claim's creation until it is bound, and from the
	// Pod's creation until it runs.
	promise timing
}

// spending lists the requests that Xylem made to each cluster for an operation, by column.
type spending struct {
	what     string
	requests []controlplane.Requests
}

// printTable prints a kubectl command and its output.
func (d *demo) printTable(ctx context.Context, v *view, args ...string) error {
	out, err := d.kubectl(ctx, v, args...)
	if err != nil {
		return err
	}
	d.prompt(v, args...)
	for _, line := range narrow(out) {
		d.out.line("   %s", line)
	}
	return nil
}

// printColumns prints a kubectl command, and selected columns of its output.
func (d *demo) printColumns(ctx context.Context, v *view, columns []string, args ...string) error {
	out, err := d.kubectl(ctx, v, args...)
	if err != nil {
		return err
	}
	d.prompt(v, args...)
	d.out.line("   (selected columns)")
	for _, line := range selectColumns(out, columns) {
		d.out.line("   %s", line)
	}
	return nil
}

// showTables prints the current objects in the host and in a member, as kubectl prints them.
func (d *demo) showTables(ctx context.Context) error {
	d.out.section("What kubectl shows in each cluster (without empty columns)")
	for _, v := range []*view{d.host, d.members[0]} {
		for _, kind := range []string{"pod", "pvc"} {
			if err := d.printTable(ctx, v, "get", kind, "-n", space, "-o", "wide"); err != nil {
				return err
			}
		}
	}
	return nil
}

// summary prints the final tables of checks, times and writes.
func (d *demo) summary(took time.Duration, complete bool) {
	d.checks.complete = complete
	d.out.title("Summary")
	for _, line := range d.checks.table(d.out) {
		d.out.line("   %s", line)
	}
	if d.figures.native != (timing{}) {
		d.out.line("")
		for _, line := range table([][]string{
			{"time from the claim's creation to", "claim Bound", "Pod Running"},
			{"across clusters, as the host shows it", seconds(d.figures.across.bound), seconds(d.figures.across.running)},
			{"within one cluster, " + pinned + " alone", seconds(d.figures.native.bound), seconds(d.figures.native.running)},
			{"a promise across clusters (Running: from the Pod's creation)", seconds(d.figures.promise.bound), seconds(d.figures.promise.running)},
		}) {
			d.out.line("   %s", line)
		}
		d.out.line("   (the scheduler checks once per second whether a claim is Bound; this delay is")
		d.out.line("   most of the time until Running in both cases)")
	}
	if d.figures.deletion != nil {
		d.out.line("")
		d.out.line("   Xylem's API writes, from the audit logs (without Leases)")
		parts := append([]spending{
			{"creating one claim and one Pod, until Running", d.figures.creation}, {"deleting both, until no object is left", d.figures.deletion},
		}, d.figures.copies...)
		for _, line := range writesTable(d.timeline.columns, parts) {
			d.out.line("   %s", line)
		}
	}
	d.out.line("")
	verdict := d.out.style(green, fmt.Sprintf("All %d checks passed", len(d.checks.list)))
	if !complete || !d.checks.passed() {
		verdict = d.out.style(red, "The demo FAILED")
	}
	d.out.line("%s, after %d s. Control plane clients are allowed 2000 requests a second.", verdict, int(took.Seconds()))
}

// writesTable returns lines with the writes to each cluster, for each operation.
func writesTable(names []string, parts []spending) []string {
	const countWidth = 3
	width := 0
	for _, name := range names {
		width = max(width, length(name))
	}
	var lines []string
	for _, part := range parts {
		lines = append(lines, part.what)
		for i, name := range names {
			n := len(writes(part.requests[i]))
			if n == 0 {
				continue
			}
			start := columnGap + pad(name, width) + columnGap + padLeft(strconv.Itoa(n), countWidth) + columnGap
			for j, text := range wrap(breakdown(part.requests[i]), textWidth-length(start)) {
				if j > 0 {
					start = pad("", length(start))
				}
				lines = append(lines, start+text)
			}
		}
	}
	return lines
}
