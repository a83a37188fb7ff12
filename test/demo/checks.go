package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// describeLines is the number of lines of each kubectl output that a failure shows.
const describeLines = 30

// tailLines is the number of lines of the manager's log that a failure shows.
const tailLines = 25

// check is one expectation in the summary.
type check struct {
	ok           bool
	name, detail string
}

// checks records the checks in a run.
type checks struct {
	list []check
	// complete reports whether the demo ran to its end.
	complete bool
}

// pass records an expectation that was met.
func (c *checks) pass(name, detail string) { c.list = append(c.list, check{true, name, detail}) }

// fail records an expectation that was not met.
func (c *checks) fail(name string, expected, is any) {
	c.list = append(c.list, check{false, name, fmt.Sprintf("expected %v, got %v", expected, is)})
}

// equal records whether a value equals the expected value.
func (c *checks) equal(name string, expected, is any, detail string) {
	if expected == is {
		c.pass(name, detail)
		return
	}
	c.fail(name, expected, is)
}

// failed reports whether any check failed.
func (c *checks) failed() bool {
	for _, check := range c.list {
		if !check.ok {
			return true
		}
	}
	return false
}

// passed reports whether the demo ran to its end and all checks passed.
func (c *checks) passed() bool { return c.complete && !c.failed() }

// table returns a line for each check.
func (c *checks) table(out *console) []string {
	rows := make([][]string, 0, len(c.list))
	width := 0
	for _, check := range c.list {
		width = max(width, length(check.name))
	}
	lines := make([]string, 0, len(rows))
	for _, check := range c.list {
		text := pad(check.name, width) + columnGap + check.detail
		if check.ok {
			text = clip(text, tableWidth-7)
		}
		lines = append(lines, out.mark(check.ok)+columnGap+text)
	}
	return lines
}

// report prints what failed, with details that help to find the cause, and returns the error. An
// interrupted run is not a failure.
func (d *demo) report(ctx context.Context, err error) error {
	if interrupted(ctx) {
		d.out.line("")
		d.out.line("Interrupted: stopping all processes.")
		return err
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause // The context's cause explains all other errors.
	}
	d.out.line("")
	d.out.line("%s", d.out.style(red, "FAILED"))
	for line := range strings.SplitSeq(err.Error(), "\n") {
		d.out.line("   %s", line)
	}
	expected, is := "no error", err.Error()
	if u := (*unmet)(nil); errors.As(err, &u) {
		expected, is = u.expected, u.is
	}
	d.checks.fail("the demo runs to its end", expected, strings.ReplaceAll(is, "\n", "; "))
	if d.host == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepLimit)
	defer cancel()
	for _, args := range [][]string{
		{"get", "clusterregistrations", "-o", "wide"},
		{"get", "pod,pvc", "-n", space, "-o", "wide"},
		{"get", "pv"},
		{"get", "volumesnapshots", "-n", space},
		{"get", "events", "-n", space, "--sort-by=.lastTimestamp"},
		{"describe", "pvc", "-n", space},
	} {
		d.evidence(ctx, d.host, args...)
	}
	for _, m := range d.members {
		d.evidence(ctx, m, "get", "pod,pvc,volumesnapshots,events", "-n", space)
	}
	if m := d.x.Manager; m != nil {
		d.out.line("")
		d.out.line("Last lines of the manager's log, %s:", m.LogPath())
		for _, line := range lastLines(m.Log(), tailLines) {
			d.out.line("%s", clip(line, 400))
		}
	}
	return err
}

// evidence prints the last lines of a kubectl command's output.
func (d *demo) evidence(ctx context.Context, v *view, args ...string) {
	out, err := d.kubectl(ctx, v, args...)
	if err != nil {
		out = err.Error()
	}
	d.prompt(v, args...)
	for _, line := range lastLines(out, describeLines) {
		d.out.line("   %s", clip(line, 2*tableWidth))
	}
}

func lastLines(text string, most int) []string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return lines[max(0, len(lines)-most):]
}
