package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	link "github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
)

const (
	// quiet is how long Xylem must write nothing before a scene ends.
	quiet = 2 * time.Second
	// settleLimit is the maximum time to wait for the end of a scene.
	settleLimit = time.Minute
	// auditEvery is the interval for reading the audit logs while waiting.
	auditEvery = 500 * time.Millisecond
)

// marks are positions in the audit logs, in the order of the timeline's columns.
type marks []controlplane.Mark

// mark returns the current end of every audit log.
func (d *demo) mark(ctx context.Context) (marks, error) {
	var out marks
	for _, v := range d.views() {
		m, err := v.Audit().Mark(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.Name(), err)
		}
		out = append(out, m)
	}
	return out, nil
}

// requests returns Xylem's requests to each cluster since the marks.
func (d *demo) requests(ctx context.Context, since marks) ([]controlplane.Requests, error) {
	out := make([]controlplane.Requests, 0, len(since))
	for i, v := range d.views() {
		all, err := v.Audit().Since(ctx, since[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.Name(), err)
		}
		out = append(out, all.By(accountIn(i)))
	}
	return out, nil
}

// accountIn returns the manager's user in the cluster that a column shows.
func accountIn(column int) string {
	if column == 0 {
		return harness.HostUser
	}
	return harness.MemberUser
}

// settle waits until Xylem has stopped writing, and returns its requests to each cluster since the
// marks.
func (d *demo) settle(ctx context.Context, since marks) ([]controlplane.Requests, error) {
	defer d.out.say("")
	var requests []controlplane.Requests
	last, changed := -1, time.Now()
	err := wait.PollUntilContextTimeout(ctx, auditEvery, settleLimit, true, func(ctx context.Context) (bool, error) {
		var err error
		if requests, err = d.requests(ctx, since); err != nil {
			return false, err
		}
		n := 0
		for _, rs := range requests {
			n += len(writes(rs))
		}
		if n != last {
			last, changed = n, time.Now()
		}
		if d.out.terminal {
			d.out.say(fmt.Sprintf("waiting until Xylem has written nothing for %s", quiet))
		}
		return time.Since(changed) >= quiet, nil
	})
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, &unmet{
			fmt.Sprintf("Xylem stops writing for %s", quiet),
			fmt.Sprintf("it is still writing after %s:\n%s", settleLimit, describe(requests, d.timeline.columns)),
		}
	}
	return requests, err
}

// describe lists the writes to each cluster.
func describe(requests []controlplane.Requests, names []string) string {
	var lines []string
	for i, rs := range requests {
		lines = append(lines, names[i]+": "+breakdown(rs))
	}
	return strings.Join(lines, "\n")
}

// writes returns the writes, except those to Leases (heartbeats and leader election).
func writes(rs controlplane.Requests) controlplane.Requests {
	return rs.Writes().Where(func(r controlplane.Request) bool { return r.Resource != "leases" })
}

// breakdown counts the writes by verb and resource, most frequent first. It counts failed writes
// separately, by status code.
func breakdown(rs controlplane.Requests) string {
	type key struct {
		verb, resource string
		code           int
	}
	counts := map[key]int{}
	for _, r := range writes(rs) {
		k := key{r.Verb, r.Resource, 0}
		if r.Code >= http.StatusBadRequest {
			k.code = r.Code
		}
		counts[k]++
	}
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b key) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.resource, b.resource), cmp.Compare(a.verb, b.verb), cmp.Compare(a.code, b.code))
	})
	parts := make([]string, 0, len(keys))
	for _, k := range keys {
		part := fmt.Sprintf("%d %s %s", counts[k], k.verb, shortResource(k.resource))
		if k.code != 0 {
			part += fmt.Sprintf(" (status %d)", k.code)
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// shortResource returns kubectl's short name for a resource.
func shortResource(resource string) string {
	name, sub, found := strings.Cut(resource, "/")
	switch name {
	case "persistentvolumes":
		name = "pv"
	case "persistentvolumeclaims":
		name = "pvc"
	}
	if found {
		return name + "/" + sub
	}
	return name
}

// refusals lists each unauthorized or forbidden request once. It skips the probe that the member's
// policy must reject.
func refusals(rs controlplane.Requests) []string {
	seen := map[string]bool{}
	for _, r := range rs {
		if r.Code != http.StatusForbidden && r.Code != http.StatusUnauthorized || r.Name == link.PolicyProbeName && !r.Unauthorized {
			continue
		}
		resource := r.Resource
		if r.Group != "" {
			resource += "." + r.Group
		}
		seen[fmt.Sprintf("%d for %s %s %s/%s", r.Code, r.Verb, resource, r.Namespace, r.Name)] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// audit checks that the registrations count their volumes, that the manager's permissions were
// sufficient, and that the manager did not exit during the run.
func (d *demo) audit(ctx context.Context) error {
	if err := d.awaitCounts(ctx); err != nil {
		return err
	}
	requests, err := d.requests(ctx, d.start)
	if err != nil {
		return err
	}
	var refused []string
	total := 0
	for i, rs := range requests {
		total += len(rs)
		for _, r := range refusals(rs) {
			refused = append(refused, d.timeline.columns[i]+": "+r)
		}
	}
	d.checks.equal("permissions: RBAC rejected none of the manager's requests", "none rejected", cmp.Or(strings.Join(refused, "; "), "none rejected"),
		fmt.Sprintf("%d requests", total))
	select {
	case <-d.x.Manager.Done():
		return &died{d.x.Manager.Err()}
	default:
		d.checks.pass("manager: the process did not restart", fmt.Sprintf("process %d", d.x.Manager.PID()))
	}
	return nil
}
