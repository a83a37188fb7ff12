package harness

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/xylem-io/xylem/test/controlplane"
)

// Budget is the number of requests to the host and a member that the manager may make for each
// object, by side, verb and resource, such as "host patch persistentvolumeclaims".
type Budget map[string]int

// Exceeded returns the requests that exceed their budget for a number of objects. The tolerance is one request for
// each object, because on a busy machine, caches lag, and other clients write at the same time: how often Xylem then
// reads again or repeats a write depends on the machine. Typical finds a request that is added for every object. It
// does not contain Events, so their tolerance is half of that.
func (b Budget) Exceeded(spent, typical map[string]int, objects int) []string {
	var found []string
	for what, n := range spent {
		allowed := (b[what] + 1) * objects
		if strings.HasSuffix(what, " events") {
			allowed -= objects / 2
		}
		if strings.Contains(what, " "+conflict+" ") {
			allowed += objects // of a write and of its repetition
		}
		if n > allowed {
			found = append(found, fmt.Sprintf("%s: %d requests for %d objects, but the budget is %d for each", what, n, objects, b[what]))
		}
	}
	for what, n := range typical {
		if n > b[what] {
			found = append(found, fmt.Sprintf("%s: %d requests for most objects, but the budget is %d; a change that raises it says why", what, n, b[what]))
		}
	}
	slices.Sort(found)
	return found
}

// conflict is the verb of writes that conflicted with another client's write.
const conflict = "conflict"

// Restarted reports whether a Link to a member began while the requests were counted: it begins with a
// review of the manager's permissions in the member.
func Restarted(spent map[string]int) bool { return spent["member create selfsubjectaccessreviews"] > 0 }

// Account marks the point in each cluster's audit log from which Xylem's requests are counted.
type Account map[string]controlplane.Mark

// Account starts counting the requests to all clusters.
func (x *Xylem) Account(ctx context.Context) (Account, error) {
	a := Account{}
	for _, c := range x.Clusters() {
		mark, err := c.Audit().Mark(ctx)
		if err != nil {
			return nil, fmt.Errorf("mark the audit log of %s: %w", c.Name(), err)
		}
		a[c.Name()] = mark
	}
	return a, nil
}

// User returns the manager's user name in a cluster's audit log.
func (x *Xylem) User(c *Cluster) string {
	if c.Name() == x.Host.Name() {
		return HostUser
	}
	return MemberUser
}

// Requests returns Xylem's requests to a cluster since the start of the count, except those for
// Leases.
func (x *Xylem) Requests(ctx context.Context, a Account, c *Cluster) (controlplane.Requests, error) {
	all, err := c.Audit().Since(ctx, a[c.Name()])
	if err != nil {
		return nil, fmt.Errorf("read the audit log of %s: %w", c.Name(), err)
	}
	return all.By(x.User(c)).Where(func(r controlplane.Request) bool { return r.Resource != "leases" }), nil
}

// Spent returns Xylem's requests to the host and a member for the objects in a namespace and for
// cluster-scoped objects, in the form of a Budget. Writes that conflicted with another client's
// write have the verb "conflict".
func (x *Xylem) Spent(ctx context.Context, a Account, namespace string, member *Cluster) (map[string]int, error) {
	counts := map[string]int{}
	for side, c := range map[string]*Cluster{"host": x.Host, "member": member} {
		requests, err := x.Requests(ctx, a, c)
		if err != nil {
			return nil, err
		}
		for _, r := range requests {
			elsewhere := r.Namespace != "" && r.Namespace != namespace
			// Skip requests for all objects at intervals, and for leftovers of earlier stories.
			// Each probe also reads the host's revision with a list of one registration.
			// After new objects of a member, it reads the member's revision with lists in Xylem's namespace, and
			// one of the volumes with a name that none has. Other lists of volumes have no name.
			revision := side == "member" && r.Verb == "list" && r.Resource == "persistentvolumes" && r.Name != ""
			shared := revision || r.Resource == "clusterregistrations/status" || r.Resource == "clusterregistrations" || r.Resource == "namespaces"
			if elsewhere || shared || r.Verb == "watch" {
				continue
			}
			verb := r.Verb
			if r.Code == http.StatusConflict {
				verb = conflict
			}
			counts[side+" "+verb+" "+r.Resource]++
		}
	}
	return counts, nil
}

// Typical returns the least but one of the requests for each of a number of objects in a namespace, or for their
// volumes and contents, in the form of a Budget. It does not change if Xylem repeats requests for some of them, because
// a cache lags, but it does with each request that is added for all of them. It does not contain lists and Events,
// which have other names.
func (x *Xylem) Typical(ctx context.Context, a Account, namespace string, member *Cluster, objects int) (map[string]int, error) {
	of := map[string]map[string]int{} // kind of request -> object -> number
	for side, c := range map[string]*Cluster{"host": x.Host, "member": member} {
		requests, err := x.Requests(ctx, a, c)
		if err != nil {
			return nil, err
		}
		for _, r := range requests {
			named := r.Name != "" && (r.Namespace == namespace || r.Resource == "persistentvolumes" || strings.HasPrefix(r.Resource, "volumesnapshotcontents"))
			if !named || r.Resource == "events" || r.Verb == "list" || r.Code == http.StatusConflict {
				continue
			}
			what := side + " " + r.Verb + " " + r.Resource
			if of[what] == nil {
				of[what] = map[string]int{}
			}
			of[what][r.Name]++
		}
	}
	counts := map[string]int{}
	for what, each := range of {
		numbers := append(slices.Collect(maps.Values(each)), make([]int, objects)...)
		slices.SortFunc(numbers, func(a, b int) int { return b - a })
		counts[what] = numbers[objects-2]
	}
	return counts, nil
}

// Served returns the response from one of the manager's own endpoints, such as its metrics.
func Served(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("read %s: %s", url, response.Status)
	}
	body, err := io.ReadAll(response.Body)
	return string(body), err
}
