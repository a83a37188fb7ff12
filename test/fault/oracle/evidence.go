package oracle

import (
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
)

// Sighting is an observed state of an object, with the time of the observation. If Gone is set, the
// object was deleted at that time, and Object is its last state.
type Sighting struct {
	At      time.Time
	Cluster string
	Gone    bool
	Object  client.Object
}

// Canary is a foreign object, with its resource versions before and after the run. "" means that it
// did not exist.
type Canary struct {
	Cluster, Object string
	Before, After   string
}

// Restore describes the restore of a cluster to its state before the run.
type Restore struct {
	Cluster string
	// Began and At are when the restore began and ended. Confirmed is when an admin confirmed it,
	// or zero.
	Began, At, Confirmed time.Time
}

// Evidence is the input of Judge.
type Evidence struct {
	// Namespace is the run's namespace in all clusters.
	Namespace string
	// Host is the host's name. IDs are the cluster IDs by name, including the host's.
	Host string
	IDs  map[string]string
	// Began is when the run began. Earlier events do not count.
	Began time.Time
	// History contains every sighting since then, in order of arrival.
	History []Sighting
	// Ledgers are the complete ledgers of the members.
	Ledgers map[string]*ledger.Ledger
	// Live contains the claims, volumes, Pods, snapshots and contents of all clusters at the end,
	// from live reads.
	Live []Sighting
	// Orphaned are the volumes, and OrphanedSnapshots the snapshots, that the registrations
	// report as orphaned, by member.
	Orphaned, OrphanedSnapshots map[string]int
	// Requests are the requests that Xylem's own users made since the beginning, by cluster. Quiet
	// are their requests after the end, when no write is expected.
	Requests, Quiet map[string]controlplane.Requests
	// Strict means that delayed writes in Quiet count too.
	Strict bool
	// Canaries are objects that Xylem must ignore.
	Canaries []Canary
	// Restored is the restore during the run, or nil.
	Restored *Restore
	// Unsettled describes what was missing when the run's patience ran out, or is empty.
	Unsettled string
	// Panics are the last log lines of managers that crashed.
	Panics []string
	// State is the normalized end state. Reference is the end state of a run without faults, or nil
	// if the two must not be compared.
	State, Reference []string
}

// Violation is a violation of an invariant.
type Violation struct {
	// Invariant is the invariant, such as I1. Oracle names the check that found the violation.
	Invariant, Oracle, Message string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s (%s): %s", v.Invariant, v.Oracle, v.Message)
}

// Judge returns all distinct violations.
func Judge(e Evidence) []Violation {
	h := index(e)
	var all []Violation
	known := map[Violation]bool{}
	for _, judge := range []func(Evidence, *history) []Violation{
		settled, accounted, notLost, flips, snapshotsAccounted, snapshotsNotLost, contentsPutToDelete, takenOnce, suspended, once, again, unfinished, believed, canaries, ownWrites, quiet, sameEnd,
	} {
		for _, v := range judge(e, h) {
			if !known[v] {
				known[v] = true
				all = append(all, v)
			}
		}
	}
	return all
}
