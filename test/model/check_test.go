package model

import (
	"flag"
	"maps"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"
)

var (
	disruptions = flag.Uint("disruptions", 3, "at most so many disruptions lie on the way to a world")
	fewer       = flag.Uint("fewer", 2, "the same, of the checks that look at more: of two claims, wake-ups, ends, and what users ask for")
	cloned      = flag.Uint("cloned", 2, "the same, of the check of claims with a data source")
	adopted     = flag.Uint("adopted", 2, "the same, of the check of volumes that the member had before")
	imported    = flag.Uint("imported", 2, "the same, of the check that begins with an admin's PV for such a volume")
	spread      = flag.Uint("spread", 1, "the same, of the check of two members")
	promised    = flag.Uint("promised", 2, "the same, of the check of promises")
)

// searched visits all worlds within some bounds.
func searched(t *testing.T, bounds Bounds) *search {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	m, err := New(t.Context(), bounds)
	if err != nil {
		t.Fatal(err)
	}
	return m.search(t.Context())
}

// report how much was visited since a check began, and what was found.
func report(t *testing.T, begun time.Time, s *search) {
	t.Helper()
	r := s.result
	t.Logf("%+v, %s: %s", s.model.bounds, time.Since(begun).Round(time.Millisecond), r)
	for what, f := range r.Findings {
		t.Errorf("%d worlds: %s\n%s", f.Worlds, what, f.Trace)
	}
	// A model in which nothing happens finds nothing.
	for _, step := range []string{"root_pvc", "root_pv", "leaf_pv", "host_volume"} {
		if r.ByController[step] == 0 {
			t.Errorf("%s took no step", step)
		}
	}
	if r.Ends == 0 {
		t.Error("something moves in every world")
	}
}

func TestCheck(t *testing.T) {
	begun := time.Now()
	s := searched(t, Bounds{Disruptions: uint8(*disruptions), Names: 1})
	s.cycles()
	report(t, begun, s)
}

// TestTwoNames has a second claim, of another name, which may get the volume of the first.
func TestTwoNames(t *testing.T) {
	begun := time.Now()
	s := searched(t, Bounds{Disruptions: uint8(*fewer), Names: 2, SecondWaits: true})
	s.cycles()
	report(t, begun, s)
}

// TestWakeups asks who enqueues each step.
func TestWakeups(t *testing.T) {
	begun := time.Now()
	s := searched(t, Bounds{Disruptions: uint8(*fewer), Names: 1, Writes: true})
	if err := s.wakeups(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d moves were told to the controllers", s.result.Events)
	report(t, begun, s)
}

// TestConfluence asks whether all orders of the same moves come to the same end.
func TestConfluence(t *testing.T) {
	begun := time.Now()
	s := searched(t, Bounds{Disruptions: uint8(*fewer), Names: 1})
	s.confluence()
	maps.DeleteFunc(s.result.Histories, func(_ string, ends int) bool { return ends == 1 })
	if diff := cmp.Diff(histories, s.result.Histories); diff != "" {
		t.Errorf("0 worlds: other ends of a history (-want +got):\n%s", diff)
	}
	for why, worlds := range s.result.Races {
		t.Logf("%d worlds have more than one end: %s", worlds, why)
	}
	report(t, begun, s)
}

// TestPromises has a class that makes promises, and a Pod that has its disk made.
func TestPromises(t *testing.T) {
	begun := time.Now()
	s := searched(t, Bounds{Disruptions: uint8(*promised), Names: 1, Promises: true})
	s.cycles()
	if err := s.wakeups(t.Context()); err != nil {
		t.Fatal(err)
	}
	report(t, begun, s)
}

// TestMembers has a second member, which a claim may go to as well.
func TestMembers(t *testing.T) {
	begun := time.Now()
	s := searched(t, Bounds{Disruptions: uint8(*spread), Names: 1, Members: true})
	s.cycles()
	report(t, begun, s)
	for _, step := range []string{"root_pvc", "root_pv", "leaf_pv"} {
		if s.result.ByController[step+ofSecond] == 0 {
			t.Errorf("%s%s took no step", step, ofSecond)
		}
	}
}

// TestClones has a second claim that is created from the first, which may be re-created.
func TestClones(t *testing.T) {
	begun := time.Now()
	s := searched(t, Bounds{Disruptions: uint8(*cloned), Names: 2, Clones: true})
	s.cycles()
	if err := s.wakeups(t.Context()); err != nil {
		t.Fatal(err)
	}
	report(t, begun, s)
}

// TestAdopting has a volume that the member had before, and admins who create host PVs for it.
func TestAdopting(t *testing.T) {
	begun := time.Now()
	s := searched(t, Bounds{Disruptions: uint8(*adopted), Names: 1, Adopts: true})
	s.cycles()
	if err := s.wakeups(t.Context()); err != nil {
		t.Fatal(err)
	}
	report(t, begun, s)
}

// TestImports begins with such a volume, an admin's host PV for it, and a claim for that, which gets
// no other volume.
func TestImports(t *testing.T) {
	begun := time.Now()
	s := searched(t, Bounds{Disruptions: uint8(*imported), Names: 1, Imports: true})
	s.cycles()
	if err := s.wakeups(t.Context()); err != nil {
		t.Fatal(err)
	}
	report(t, begun, s)
}

// TestAsking has users who make claims larger, and who ask for earlier volumes by name.
func TestAsking(t *testing.T) {
	begun := time.Now()
	s := searched(t, Bounds{Disruptions: uint8(*fewer), Names: 1, Asks: true})
	s.cycles()
	if err := s.wakeups(t.Context()); err != nil {
		t.Fatal(err)
	}
	report(t, begun, s)
}
