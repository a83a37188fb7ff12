package oracle

import (
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
)

// Sighting is a state of an object, when it was seen; Gone: its last, when it was
// observed to be gone.
type Sighting struct {
	At      time.Time
	Cluster string
	Gone    bool
	Object  client.Object
}

// Canary is an object that is not Xylem's, and its resource version before and
// after; "" is absent.
type Canary struct {
	Cluster, Object string
	Before, After   string
}

// Restore is a cluster that went back to the state that it had before the run.
type Restore struct {
	Cluster string
	// Began is when that began, At when it was done, Confirmed when an admin confirmed it;
	// zero: nobody did.
	Began, At, Confirmed time.Time
}

// Evidence is what there is to judge a run by.
type Evidence struct {
	// Namespace of the run, in all clusters.
	Namespace string
	// Host is the host's name; IDs are the clusters' identities by name, the
	// members' and the host's.
	Host string
	IDs  map[string]string
	// Began is when the run did. What lies before is another's.
	Began time.Time
	// History is every sighting since, in the order of arrival.
	History []Sighting
	// Ledgers of the members, whole.
	Ledgers map[string]*ledger.Ledger
	// Live are the claims, volumes, Pods, snapshots and their contents of all clusters at the
	// end, by live reads.
	Live []Sighting
	// Orphaned are the volumes, and OrphanedSnapshots the snapshots, that the registrations
	// report as such, by member.
	Orphaned, OrphanedSnapshots map[string]int
	// Requests are those of Xylem's own identities since the beginning, by
	// cluster; Quiet those of the time after which nothing should be written.
	Requests, Quiet map[string]controlplane.Requests
	// Strict: in that time also what comes with a delay of seconds counts.
	Strict bool
	// Canaries are objects that it has nothing to do with.
	Canaries []Canary
	// Restored is the restore in the middle of the run; nil: none.
	Restored *Restore
	// Unsettled reports what was lacking when patience ran out; "": nothing.
	Unsettled string
	// Panics are the ends of the logs of managers that crashed by themselves.
	Panics []string
	// State is the normalised end; Reference that of a run without faults. Nil:
	// there is nothing to compare with.
	State, Reference []string
}

// Violation of an invariant.
type Violation struct {
	// Invariant is its number, Oracle what found it.
	Invariant, Oracle, Message string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s (%s): %s", v.Invariant, v.Oracle, v.Message)
}

// Judge returns all violations, each once.
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
