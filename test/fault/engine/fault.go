package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/test/fault/oracle"
	"github.com/xylem-io/xylem/test/fault/proxy"
)

// Kind is the kind of a fault.
type Kind string

// The kinds of faults. Each is injected at one of the manager's writes.
const (
	KillBefore  Kind = "kill-before"  // the manager dies before the write
	KillAfter   Kind = "kill-after"   // the manager dies after the write, before the response
	Conflict    Kind = "conflict"     // 409
	TooMany     Kind = "too-many"     // 429 with Retry-After
	Internal    Kind = "internal"     // 500
	Unavailable Kind = "unavailable"  // 503
	Stall       Kind = "stall"        // the response takes longer than any client's timeout
	Cut         Kind = "cut"          // the connection breaks
	CutAfter    Kind = "cut-after"    // the connection breaks after the write, before the response
	BlackHole   Kind = "black-hole"   // the cluster does not respond for some seconds
	EndWatches  Kind = "end-watches"  // all watches of all clusters end
	GoneWatches Kind = "gone-watches" // end-watches, and the next watches get 410 Expired, so clients must list again
	StaleLists  Kind = "stale-lists"  // kill-after, and the restarted manager's first lists are stale
	StaleHost   Kind = "stale-host"   // stale-lists in the host only, so that leaves seem to lack roots

	StaleClaims  Kind = "stale-claims"  // stale-lists for claims only, in all clusters
	StaleVolumes Kind = "stale-volumes" // stale-lists for volumes only
	StalePods    Kind = "stale-pods"    // stale-lists for Pods only
	LagClaims    Kind = "lag-claims"    // watches of claims deliver no events for some seconds, in all clusters
	LagVolumes   Kind = "lag-volumes"   // lag-claims for volumes
	LagPods      Kind = "lag-pods"      // lag-claims for Pods

	StaleSnapshots Kind = "stale-snapshots" // stale-lists for VolumeSnapshots only
	StaleContents  Kind = "stale-contents"  // stale-lists for VolumeSnapshotContents only
	LagSnapshots   Kind = "lag-snapshots"   // lag-claims for VolumeSnapshots
	LagContents    Kind = "lag-contents"    // lag-claims for VolumeSnapshotContents

	RestoreHost       Kind = "restore-host"        // while the manager runs, the host's etcd is restored to its state before the scenario
	RestoreMember     Kind = "restore-member"      // restore-host for a member: the member that was written to, or the first
	KillRestoreHost   Kind = "kill-restore-host"   // kill-after, and the host is restored before the manager restarts
	KillRestoreMember Kind = "kill-restore-member" // kill-restore-host for a member
)

// Kills are the two kinds of kill. Errors are the faults that the manager survives.
var (
	Kills  = []Kind{KillBefore, KillAfter}
	Errors = []Kind{
		Conflict, TooMany, Internal, Unavailable, Cut, CutAfter, EndWatches, StaleLists, StaleHost, GoneWatches, BlackHole, Stall,
		StaleClaims, LagVolumes, StalePods, LagClaims, StaleVolumes, LagPods,
	}
)

// OfSnapshots lists the additional errors for scenarios with snapshots.
var OfSnapshots = []Kind{StaleContents, LagSnapshots, LagContents, StaleSnapshots}

// Restores are the faults that restore a cluster.
var Restores = []Kind{RestoreHost, KillRestoreMember, RestoreMember, KillRestoreHost}

// lagging maps the faults that make a cache lag to the resource in that cache.
var lagging = map[Kind]string{
	StaleClaims: "persistentvolumeclaims", StaleVolumes: "persistentvolumes", StalePods: "pods",
	LagClaims: "persistentvolumeclaims", LagVolumes: "persistentvolumes", LagPods: "pods",
	StaleSnapshots: "volumesnapshots", StaleContents: "volumesnapshotcontents",
	LagSnapshots: "volumesnapshots", LagContents: "volumesnapshotcontents",
}

// inProxy maps each fault to what the proxy does with the write; "" means that it forwards the
// write.
var inProxy = map[Kind]proxy.Fault{
	KillBefore: proxy.KillBefore, KillAfter: proxy.KillAfter, Conflict: proxy.Conflict, TooMany: proxy.TooManyRequests,
	Internal: proxy.InternalError, Unavailable: proxy.Unavailable, Stall: proxy.Stall, Cut: proxy.Cut, CutAfter: proxy.CutAfter, BlackHole: proxy.BlackHole,
	EndWatches: "", GoneWatches: "", StaleLists: proxy.KillAfter, StaleHost: proxy.KillAfter,
	StaleClaims: proxy.KillAfter, StaleVolumes: proxy.KillAfter, StalePods: proxy.KillAfter, LagClaims: "", LagVolumes: "", LagPods: "",
	StaleSnapshots: proxy.KillAfter, StaleContents: proxy.KillAfter, LagSnapshots: "", LagContents: "",
	RestoreHost: "", RestoreMember: "", KillRestoreHost: proxy.KillAfter, KillRestoreMember: proxy.KillAfter,
}

// Point identifies a write of a run: the Nth write with the key. Writes to the host and the members
// are concurrent, so their overall order varies, but the order of writes with the same key does
// not.
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
		return Fault{}, fmt.Errorf("fault %q: want kind@cluster/verb/resource/name#n, as printed by `points` or in a failure", s)
	}
	return Fault{Kind: Kind(kind), Point: Point{Key: key, N: n}}, nil
}

// ParseKinds parses the name of a kind, or "all".
func ParseKinds(s string) ([]Kind, error) {
	if s == "all" {
		return everyKind(), nil
	}
	if _, known := inProxy[Kind(s)]; !known {
		return nil, fmt.Errorf("unknown kind of fault %q: want one of %v, or all", s, everyKind())
	}
	return []Kind{Kind(s)}, nil
}

func everyKind() []Kind { return slices.Concat(Kills, Errors, OfSnapshots, Restores) }

// Describe returns a one-line description of faults.
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

// copies separates the original's name from a digest in the name of a ConfigMap's or Secret's copy
// in a member.
const copies = ".xylem-"

// keyOf returns a write's key, which is the same in every run. It returns false for writes that do
// not count: to Leases, which depend on the clock; to Events, on which nothing depends; and to
// other runs' namespaces.
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
	case r.Resource == "secrets" && isTokenSecret(name):
		name = "token"
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

// isTokenSecret reports whether a Secret's name is that of a Pod's tokens, which contains the Pod's UID.
func isTokenSecret(name string) bool {
	_, is := mirror.PodOfTokenSecret(name)
	return is
}
