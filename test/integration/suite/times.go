package suite

import (
	"slices"
	"time"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// The times for which stories wait. They are shorter than the shipped ones, but each must exceed
// what it says on a machine with half the speed and a load of 20. The story "The shipped times"
// waits for the defaults of the flags.
const (
	// CallTimeout is how long members' sidecars wait for their driver. It must exceed the time that a
	// story takes to delete the source of a stalled clone, and to let the clone continue: a retry fails
	// for a source that is being deleted.
	CallTimeout = 10 * time.Second
	// SilentAfter is how long a member's programs may take to respond before this is reported. It must
	// exceed CallTimeout by the time that Xylem takes to move another claim to another member: until
	// then, a story expects no report of the call that has reached its timeout.
	SilentAfter = CallTimeout + 10*time.Second
	// NodeGrace is how long a member may be away before its node is NotReady. It must not be less than
	// the duration of a fence and the interval of the attempts to acquire it, 6 s and 2 s: a manager
	// that replaces a killed one waits that long, and must not report its members as away.
	NodeGrace = 8 * time.Second
	// StuckAfter is how long a deletion may take before it is reported. It must exceed the deletion of
	// all volumes in a story about the budget of requests, which allows no report, even if a sidecar
	// fails once and tries again after 5 s.
	StuckAfter = 10 * time.Second
	// recheck is the interval at which the manager checks again what no event reports, and the maximum
	// interval between its attempts to connect. Nothing has to finish before it.
	recheck = 2 * time.Second
	// resync is the interval at which Kubernetes' PV controller examines all volumes again. Nothing has
	// to finish before it. Kubernetes' default is 15 s.
	resync = 3 * time.Second
)

// timed returns the options with the times that all suites share.
func timed(o harness.Options) harness.Options {
	o.ManagerArgs = append([]string{"--recheck-interval=" + recheck.String()}, o.ManagerArgs...)
	o.Host = resyncing(o.Host)
	o.Members = slices.Clone(o.Members)
	for i := range o.Members {
		o.Members[i] = resyncing(o.Members[i])
	}
	return o
}

// resyncing sets resync in a cluster.
func resyncing(c controlplane.ClusterOptions) controlplane.ClusterOptions {
	return c.WithArgs(controlplane.ControllerManager, "--pvclaimbinder-sync-period="+resync.String())
}
