package moves

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/test/model/bound"
)

var (
	writes   = bound.Flag("writes", 1, 1, "maximum number of Pods that write to the claim's disk")
	upsets   = bound.Flag("disruptions", 1, 0, "maximum number of disruptions on the path to a world")
	restores = bound.Flag("restores", 1, 0, "maximum number of restores of the host")
	during   = flag.Bool("during", false, "also restore the host while a command runs")
)

// check visits all worlds within the bounds. It logs a summary and fails for each finding.
func check(t *testing.T, bounds Bounds) {
	t.Helper()
	begun := time.Now()
	var r Result
	synctest.Test(t, func(t *testing.T) { r = Check(t.Context(), bounds) })
	t.Logf("%+v, %s: %d worlds, %d commands", bounds, time.Since(begun).Round(time.Millisecond), r.Worlds, r.Runs)
	for _, end := range slices.Sorted(maps.Keys(r.Ended)) {
		t.Logf("%5d times %s", r.Ended[end], end)
	}
	for what, f := range r.Findings {
		t.Errorf("%d worlds: %s\n%s", f.Worlds, what, f.Trace)
	}
	// A model in which a command never succeeds cannot find its defects.
	for _, v := range []verb{move, undo, deleteOld} {
		if r.Ended[string(v)+": done"] == 0 {
			t.Errorf("%s never succeeded", v)
		}
	}
}

// both runs a check in which Kubernetes and Xylem are as fast as possible, and one in which they are
// slow.
func both(t *testing.T, bounds Bounds) {
	t.Helper()
	for _, eager := range []bool{true, false} {
		with := bounds
		with.Eager = eager
		t.Run(fmt.Sprintf("eager %t", eager), func(t *testing.T) {
			t.Parallel()
			check(t, with)
		})
	}
}

func TestCheck(t *testing.T) {
	both(t, Bounds{Policy: corev1.PersistentVolumeReclaimDelete, Writes: int(writes()), Disruptions: int(upsets())})
}

// TestRetain checks a claim whose volume has policy Retain, with one disruption less, because the
// commands never destroy its disk.
func TestRetain(t *testing.T) {
	both(t, Bounds{Policy: corev1.PersistentVolumeReclaimRetain, Writes: int(writes()), Disruptions: max(int(upsets())-1, 0)})
}

// TestRestores checks restores of the host to any state of a move.
func TestRestores(t *testing.T) {
	both(t, Bounds{Policy: corev1.PersistentVolumeReclaimDelete, Writes: int(writes()), Disruptions: int(restores()), Restores: true, During: *during})
}

// TestExisting checks that no move uses a volume of the target that existed before.
func TestExisting(t *testing.T) {
	for _, offer := range []Offer{ByHost, ByTarget} {
		t.Run(string(offer), func(t *testing.T) {
			both(t, Bounds{Policy: corev1.PersistentVolumeReclaimDelete, Disruptions: int(upsets()), Existing: offer})
		})
	}
}
