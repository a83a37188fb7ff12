package main

import (
	"context"
	"net/http"
	"sort"
	"strings"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// account is the baseline for a measurement: the position in each cluster's audit log, and the
// manager's resource usage, when the measurement began.
type account struct {
	r     *rig
	marks map[string]controlplane.Mark
	metrics
}

// clustersOf returns the clusters that Xylem uses: the host and the members, not the native one.
func (r *rig) clustersOf() []*controlplane.Cluster {
	all := []*controlplane.Cluster{r.x.Fleet.Host}
	for i := range r.members {
		all = append(all, r.x.Fleet.Member(memberName(i)))
	}
	return all
}

func (r *rig) open(ctx context.Context) (account, error) {
	a := account{r: r, marks: map[string]controlplane.Mark{}}
	for _, c := range r.clustersOf() {
		mark, err := c.Audit().Mark(ctx)
		if err != nil {
			return a, err
		}
		a.marks[c.Name()] = mark
	}
	var err error
	a.metrics, err = r.metrics(ctx)
	r.resetPeak()
	return a, err
}

// Count is the number of requests of one kind.
type Count struct {
	// Side is "host" or "members".
	Side string `json:"side"`
	Verb string `json:"verb"`
	// DryRun reports whether the requests were dry runs, which change nothing.
	DryRun bool `json:"dryRun,omitempty"`
	// Resource is the plural, with the subresource. For events, it includes the kind of the
	// object that they are about.
	Resource string  `json:"resource"`
	Number   int     `json:"number"`
	Refused  int     `json:"refused,omitempty"`
	Each     float64 `json:"each"`
}

func (c Count) write() bool {
	return controlplane.Request{Verb: c.Verb, DryRun: c.DryRun}.Write()
}

// ofPod reports whether the requests are about Pods rather than volumes.
func (c Count) ofPod() bool {
	return strings.HasPrefix(c.Resource, "pods") || c.Resource == "events (pod)"
}

// shared reports whether the requests are made at intervals, regardless of the number of volumes.
func (c Count) shared() bool {
	switch c.Resource {
	case "leases", "clusterregistrations", "clusterregistrations/status", "nodes", "nodes/status", "csistoragecapacities", "namespaces":
		return true
	}
	return false
}

// close adds to a run the manager's requests and resource usage since the account was opened.
func (a account) close(ctx context.Context, run *Run) error {
	m, err := a.r.metrics(ctx)
	if err != nil {
		return err
	}
	if run.Values[restarts] > 0 {
		a.metrics = metrics{} // metrics cover only the current process
	}
	run.CPUSeconds, run.PeakMiB = m.cpu()-a.cpu(), a.r.peak()/(1<<20)
	run.Reconciles = map[string]float64{}
	for name, n := range m {
		if controller, ok := strings.CutPrefix(name, reconciles); ok && n > a.metrics[name] {
			run.Reconciles[controller] = (n - a.metrics[name]) / float64(max(run.Claims, 1))
		}
	}
	counts := map[Count]*Count{}
	for i, c := range a.r.clustersOf() {
		all, err := c.Audit().Since(ctx, a.marks[c.Name()])
		if err != nil {
			return err
		}
		user, side := harness.MemberUser, "members"
		if i == 0 {
			user, side = harness.HostUser, "host"
		}
		for _, request := range all.By(user) {
			key := Count{Side: side, Verb: request.Verb, DryRun: request.DryRun, Resource: resourceOf(request)}
			if counts[key] == nil {
				one := key
				counts[key] = &one
			}
			counts[key].Number++
			if request.Code >= http.StatusBadRequest {
				counts[key].Refused++
			}
		}
	}
	for _, c := range counts {
		c.Each = float64(c.Number) / float64(max(run.Claims, 1))
		run.Requests = append(run.Requests, *c)
	}
	sort.Slice(run.Requests, func(i, j int) bool { return run.Requests[i].Number > run.Requests[j].Number })
	return nil
}

func resourceOf(r controlplane.Request) string {
	if r.Resource != "events" {
		return r.Resource
	}
	kind, _, _ := strings.Cut(r.Name, "-")
	return "events (" + kind + ")"
}
