package model

import (
	"context"
	"maps"
	"os"
	"runtime/debug"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/xylem-io/xylem/test/model/bound"
)

// The bounds of the searches, in full and with -short.
var (
	disruptions = bound.Flag("disruptions", 3, 2, "maximum number of disruptions on the path to a world")
	fewer       = bound.Flag("fewer", 2, 1, "maximum number of disruptions in the checks of wake-ups, of the order of moves, and of users' requests")
	named       = bound.Flag("named", 3, 1, "maximum number of disruptions in the check of a second claim with another name")
	cloned      = bound.Flag("cloned", 2, 1, "maximum number of disruptions in the check of claims with a data source")
	needed      = bound.Flag("needed", 2, 1, "maximum number of disruptions in the check of needs that meet")
	adopted     = bound.Flag("adopted", 2, 1, "maximum number of disruptions in the check of a member's existing volume")
	imported    = bound.Flag("imported", 1, 1, "maximum number of disruptions in the check that begins with an admin's PV for an existing volume")
	restoring   = bound.Flag("restores", 4, 3, "maximum number of disruptions in the check of restores")
	spread      = bound.Flag("spread", 2, 1, "maximum number of disruptions in the check of two members")
	edited      = bound.Flag("edited", 1, 1, "maximum number of disruptions in the checks of edits, except TestEdits")
	promised    = bound.Flag("promised", 2, 1, "maximum number of disruptions in the check of promises")
)

// TestMain makes the garbage collector run less often, because visited worlds stay in memory and
// little garbage accumulates.
func TestMain(m *testing.M) {
	debug.SetGCPercent(300)
	os.Exit(m.Run())
}

// check visits all worlds within the bounds. It logs a summary and fails for each finding.
func check(t *testing.T, bounds Bounds, looks ...func(context.Context, *search) error) Result {
	t.Helper()
	begun := time.Now()
	ctrl.SetLogger(logr.Discard())
	m, err := New(t.Context(), bounds)
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Check(t.Context(), looks...)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v, %s: %s", bounds, time.Since(begun).Round(time.Millisecond), r)
	for what, f := range r.Findings {
		t.Errorf("%d worlds: %s\n%s", f.Worlds, what, f.Trace)
	}
	// A model in which a controller never acts cannot find its defects.
	for _, step := range []string{"root_pvc", "root_pv", "leaf_pv", "host_volume"} {
		if r.ByController[step] == 0 && (step != "host_volume" || bounds.Disruptions > 0) { // it acts only after a disruption
			t.Errorf("%s never took a step", step)
		}
	}
	if r.Ends == 0 {
		t.Error("no world is without moves")
	}
	return r
}

func TestCheck(t *testing.T) {
	check(t, Bounds{Disruptions: uint8(disruptions()), Names: 1}, cycles)
}

// TestRestores checks paths with more disruptions of fewer kinds, on which both the member and the
// host lose the record of a volume.
func TestRestores(t *testing.T) {
	check(t, Bounds{Disruptions: uint8(restoring()), Names: 1, Restores: true}, cycles)
}

// TestTwoNames checks worlds with a second claim with another name, which may get the first claim's
// volume.
func TestTwoNames(t *testing.T) {
	check(t, Bounds{Disruptions: uint8(named()), Names: 2, SecondWaits: true}, cycles)
}

// TestWakeups checks that each step has an event that enqueues it.
func TestWakeups(t *testing.T) {
	r := check(t, Bounds{Disruptions: uint8(fewer()), Names: 1, Writes: true}, wakeups)
	t.Logf("the controllers received the events of %d moves", r.Events)
}

// TestConfluence checks that all orders of the same moves lead to the same end.
func TestConfluence(t *testing.T) {
	r := check(t, Bounds{Disruptions: uint8(fewer()), Names: 1}, confluence)
	maps.DeleteFunc(r.Histories, func(_ string, ends int) bool { return ends == 1 })
	if diff := cmp.Diff(histories, r.Histories); diff != "" {
		t.Errorf("0 worlds: other ends of a history (-want +got):\n%s", diff)
	}
	for why, worlds := range r.Races {
		t.Logf("%d worlds have more than one end: %s", worlds, why)
	}
}

// TestPromises checks worlds with a class in promise mode, and a Pod for which the disk is
// provisioned.
func TestPromises(t *testing.T) {
	check(t, Bounds{Disruptions: uint8(promised()), Names: 1, Promises: true}, cycles, wakeups)
}

// TestMembers checks worlds with a second member, in which the claim may also be placed.
func TestMembers(t *testing.T) {
	r := check(t, Bounds{Disruptions: uint8(spread()), Names: 1, Members: true}, cycles)
	for _, step := range []string{"root_pvc", "root_pv", "leaf_pv"} {
		if r.ByController[step+ofSecond] == 0 {
			t.Errorf("%s%s never took a step", step, ofSecond)
		}
	}
}

// TestClones checks worlds with a second claim that is cloned from the first, which may be
// re-created.
func TestClones(t *testing.T) {
	check(t, Bounds{Disruptions: uint8(cloned()), Names: 2, Clones: true}, cycles, wakeups)
}

// TestNeeds checks worlds in which the features that need a volume's data meet, and in which the member has
// a foreign volume. Because a backup tool acts only after another disruption, one search has only those that
// can precede it.
func TestNeeds(t *testing.T) {
	for name, bounds := range map[string]Bounds{
		"promises":      {Names: 2, Promises: true, Disruptions: uint8(needed())},
		"a move":        {Names: names}, // the move is the disruption; package moves adds others
		"a backup tool": {Names: 1, Promises: true, Backups: true, Disruptions: 2},
	} {
		t.Run(name, func(t *testing.T) {
			bounds.Needs, bounds.Clones, bounds.Adopts = true, true, true
			looks := []func(context.Context, *search) error{wakeups}
			if !bounds.Promises || bounds.Disruptions == 1 {
				// After a restore of the host, a release begins again in each process, and a process of the model takes
				// only one step. So cycles would report that Xylem writes forever.
				looks = append(looks, cycles)
			}
			if name == "a move" {
				looks = append(looks, swaps)
			}
			check(t, bounds, looks...)
		})
	}
}

// TestAdopting checks worlds in which the member has an existing volume and admins create host PVs
// for it.
func TestAdopting(t *testing.T) {
	check(t, Bounds{Disruptions: uint8(adopted()), Names: 1, Adopts: true}, cycles, wakeups)
}

// TestImports checks worlds that begin with a member's existing volume, an admin's host PV for it,
// and a claim that can get no other volume.
func TestImports(t *testing.T) {
	check(t, Bounds{Disruptions: uint8(imported()), Names: 1, Imports: true}, cycles, wakeups)
}

// TestAsking checks worlds in which users expand claims, and request earlier volumes by name.
func TestAsking(t *testing.T) {
	check(t, Bounds{Disruptions: uint8(fewer()), Names: 1, Asks: true}, cycles, wakeups)
}

// TestEdits checks worlds in which users and admins edit what Xylem and Kubernetes maintain, remove
// finalizers, and delete classes.
func TestEdits(t *testing.T) {
	check(t, Bounds{Disruptions: uint8(fewer()), Names: 1, Edits: true}, cycles)
}

// TestEditsElsewhere checks the worlds of the other tests, with one disruption, which may also be an
// edit.
func TestEditsElsewhere(t *testing.T) {
	for name, bounds := range map[string]Bounds{
		"one claim":     {Names: 1},
		"a second name": {Names: 2, SecondWaits: true},
		"promises":      {Names: 1, Promises: true},
		"two members":   {Names: 1, Members: true},
		"asking":        {Names: 1, Asks: true},
		"clones":        {Names: 2, Clones: true},
		"adopting":      {Names: 1, Adopts: true},
		"imports":       {Names: 1, Imports: true},
	} {
		t.Run(name, func(t *testing.T) {
			bounds.Edits, bounds.Disruptions = true, uint8(edited())
			looks := []func(context.Context, *search) error{cycles, wakeups}
			if bounds.Members || bounds.Imports {
				// The events of the second member's caches are not modeled. If an admin changes the claimRef of an
				// import before leaf_pv has recorded it, only the host's PV controller reports this at once.
				looks = looks[:1]
			}
			check(t, bounds, looks...)
		})
	}
}
