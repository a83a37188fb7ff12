package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/xylem-io/xylem/test/fault/oracle"
	"github.com/xylem-io/xylem/test/fault/proxy"
)

// Kind is the kind of a fault.
type Kind string

// The kinds of faults. Each is injected at a write of the manager.
const (
	KillBefore  Kind = "kill-before"  // the manager dies before the write
	KillAfter   Kind = "kill-after"   // the manager dies after the write, before the response
	Conflict    Kind = "conflict"     // 409
	TooMany     Kind = "too-many"     // 429 with Retry-After
	Internal    Kind = "internal"     // 500
	Unavailable Kind = "unavailable"  // 503
	Stall       Kind = "stall"        // no response for longer than any client waits
	Cut         Kind = "cut"          // the connection breaks
	CutAfter    Kind = "cut-after"    // the connection breaks after the write, before the response
	BlackHole   Kind = "black-hole"   // the cluster stops responding for a while
	EndWatches  Kind = "end-watches"  // all watches of all clusters end
	GoneWatches Kind = "gone-watches" // all watches end, and must start again from a list
	StaleLists  Kind = "stale-lists"  // kill-after, and the next process's first lists are stale
	StaleHost   Kind = "stale-host"   // the same for the host only: leaves without roots

	StaleClaims  Kind = "stale-claims"  // the same for one kind only, in all clusters, while others are current
	StaleVolumes Kind = "stale-volumes" // the same
	StalePods    Kind = "stale-pods"    // the same
	LagClaims    Kind = "lag-claims"    // the watches of one kind deliver no events for some time, in all clusters
	LagVolumes   Kind = "lag-volumes"   // the same
	LagPods      Kind = "lag-pods"      // the same

	StaleSnapshots Kind = "stale-snapshots" // the same for VolumeSnapshots, and then for their contents
	StaleContents  Kind = "stale-contents"  // the same
	LagSnapshots   Kind = "lag-snapshots"   // the same
	LagContents    Kind = "lag-contents"    // the same

	RestoreHost       Kind = "restore-host"        // the host's etcd is restored to before the scenario, while the manager runs
	RestoreMember     Kind = "restore-member"      // the same for a member: the member of the write, or the first
	KillRestoreHost   Kind = "kill-restore-host"   // kill-after, and the host is restored before the manager restarts
	KillRestoreMember Kind = "kill-restore-member" // the same for a member
)

// Kills are the two kinds of kill. Errors are the faults that the manager survives.
var (
	Kills  = []Kind{KillBefore, KillAfter}
	Errors = []Kind{
		Conflict, TooMany, Internal, Unavailable, Cut, CutAfter, EndWatches, StaleLists, StaleHost, GoneWatches, BlackHole, Stall,
		StaleClaims, LagVolumes, StalePods, LagClaims, StaleVolumes, LagPods,
	}
)

// OfSnapshots are the additional errors of scenarios with snapshots.
var OfSnapshots = []Kind{StaleContents, LagSnapshots, LagContents, StaleSnapshots}

// Restores are the ways to restore a cluster.
var Restores = []Kind{RestoreHost, KillRestoreMember, RestoreMember, KillRestoreHost}

// lagging is the resource with a lagging cache.
var lagging = map[Kind]string{
	StaleClaims: "persistentvolumeclaims", StaleVolumes: "persistentvolumes", StalePods: "pods",
	LagClaims: "persistentvolumeclaims", LagVolumes: "persistentvolumes", LagPods: "pods",
	StaleSnapshots: "volumesnapshots", StaleContents: "volumesnapshotcontents",
	LagSnapshots: "volumesnapshots", LagContents: "volumesnapshotcontents",
}

// inProxy is the proxy's part of the fault.
var inProxy = map[Kind]proxy.Fault{
	KillBefore: proxy.KillBefore, KillAfter: proxy.KillAfter, Conflict: proxy.Conflict, TooMany: proxy.TooManyRequests,
	Internal: proxy.InternalError, Unavailable: proxy.Unavailable, Stall: proxy.Stall, Cut: proxy.Cut, CutAfter: proxy.CutAfter, BlackHole: proxy.BlackHole,
	EndWatches: "", GoneWatches: "", StaleLists: proxy.KillAfter, StaleHost: proxy.KillAfter,
	StaleClaims: proxy.KillAfter, StaleVolumes: proxy.KillAfter, StalePods: proxy.KillAfter, LagClaims: "", LagVolumes: "", LagPods: "",
	StaleSnapshots: proxy.KillAfter, StaleContents: proxy.KillAfter, LagSnapshots: "", LagContents: "",
	RestoreHost: "", RestoreMember: "", KillRestoreHost: proxy.KillAfter, KillRestoreMember: proxy.KillAfter,
}

// Point identifies a write of a run: the nth of its key. Writes to the two sides are concurrent,
// so their number in the whole run means little. The number for one key is the same in every run.
type Point struct {
	Key string
	N   int
}

func (p Point) String() string { return p.Key + "#" + strconv.Itoa(p.N) }

// Fault is a kind of fault at a point.
type Fault struct {
	Kind  Kind
	Point Point
}

func (f Fault) String() string { return string(f.Kind) + "@" + f.Point.String() }

// ParseFault parses the output of String.
func ParseFault(s string) (Fault, error) {
	kind, rest, ok := strings.Cut(s, "@")
	key, number, found := strings.Cut(rest, "#")
	n, err := strconv.Atoi(number)
	if _, known := inProxy[Kind(kind)]; !ok || !found || err != nil || n < 1 || !known {
		return Fault{}, fmt.Errorf("fault %q: want kind@cluster/verb/resource/name#n, as `list` and a failure print it", s)
	}
	return Fault{Kind: Kind(kind), Point: Point{Key: key, N: n}}, nil
}

// ParseKinds parses the name of a kind, or "all".
func ParseKinds(s string) ([]Kind, error) {
	if s == "all" {
		return everyKind(), nil
	}
	if _, known := inProxy[Kind(s)]; !known {
		return nil, fmt.Errorf("%q is not a kind of fault: want one of %v, or all", s, everyKind())
	}
	return []Kind{Kind(s)}, nil
}

func everyKind() []Kind { return slices.Concat(Kills, Errors, OfSnapshots, Restores) }

// Describe describes faults in one line.
func Describe(faults []Fault) string {
	if len(faults) == 0 {
		return "no fault"
	}
	parts := make([]string, 0, len(faults))
	for _, f := range faults {
		parts = append(parts, f.String())
	}
	return strings.Join(parts, " ")
}

// copies separates the name of a ConfigMap or Secret from the digest in the name of its copy in a
// member.
const copies = ".xylem-"

// keyOf returns a write's key, which has no parts that differ from run to run. It returns false
// for writes that are not counted: Leases, which depend on the clock; Events, which nothing
// depends on; and those to other runs' namespaces.
func keyOf(r proxy.Request, namespace string) (string, bool) {
	if slices.Contains([]string{"leases", "events"}, r.Resource) {
		return "", false
	}
	name := r.Name
	switch {
	case r.Resource == "namespaces" && name != namespace, r.Namespace != namespace && strings.HasPrefix(r.Namespace, oracle.NamespacePrefix):
		return "", false
	case r.Resource == "namespaces":
		name = "leaf"
	case r.Resource == "configmaps", r.Resource == "secrets":
		name, _, _ = strings.Cut(name, copies) // the digest contains the namespace's UID
	case r.Resource == "persistentvolumes":
		name = "volume"
	case r.Resource == "volumesnapshotcontents":
		name = "content"
	case r.Resource == "csistoragecapacities":
		name = "capacity"
	}
	resource := r.Resource
	if r.Subresource != "" {
		resource += "." + r.Subresource
	}
	return strings.Join([]string{r.Cluster, r.Verb, resource, name}, "/"), true
}
