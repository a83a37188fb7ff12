package csidriver

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xylem-io/xylem/test/controlplane/ledger"
)

func open(t *testing.T, dir string) *store {
	t.Helper()
	book, err := ledger.Open(LedgerPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = book.Close() })
	s, err := openStore(dir, book)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func live(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	l, err := ledger.Read(LedgerPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int64{}
	for id, e := range l.Live() {
		sizes[id] = e.CapacityBytes
	}
	return sizes
}

// TestRestartCompletesTheLedger changes disks without writing a ledger entry, as if the driver had
// crashed in between.
func TestRestartCompletesTheLedger(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for _, id := range []string{"a", "b"} {
		if _, _, err := s.create(volume{ID: id, Name: id, CapacityBytes: 10}, 0); err != nil {
			t.Fatal(err)
		}
	}
	s = open(t, dir)
	if diff := cmp.Diff(map[string]int64{"a": 10, "b": 10}, live(t, dir)); diff != "" {
		t.Fatalf("after creation (-want +got):\n%s", diff)
	}

	if _, err := s.remove("a"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.change("b", 0, func(v *volume) { v.CapacityBytes = 20 }); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if diff := cmp.Diff(map[string]int64{"b": 20}, live(t, dir)); diff != "" {
		t.Errorf("after a removal and an expansion (-want +got):\n%s", diff)
	}
	if _, ok := s.get("b"); !ok {
		t.Error("b is missing")
	}
}

func TestIncompleteVolumeIsRemoved(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	half := filepath.Join(VolumesDir(dir), ".a")
	if err := os.Mkdir(half, 0o700); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
	if _, err := os.Stat(half); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the incomplete volume still exists: %v", err)
	}
	if got := live(t, dir); len(got) != 0 {
		t.Errorf("live = %v, want none", got)
	}
}

func TestCreateAndRemoveAreIdempotent(t *testing.T) {
	s := open(t, t.TempDir())
	for i, want := range []bool{false, true} {
		if _, existed, err := s.create(volume{ID: "a", CapacityBytes: 1}, 0); err != nil || existed != want {
			t.Errorf("creation %d: existed %t, %v, want %t", i, existed, err, want)
		}
	}
	for i, want := range []bool{true, false} {
		if existed, err := s.remove("a"); err != nil || existed != want {
			t.Errorf("removal %d: existed %t, %v, want %t", i, existed, err, want)
		}
	}
}

func TestVolumesShareTheCapacity(t *testing.T) {
	s := open(t, t.TempDir())
	if _, _, err := s.create(volume{ID: "a", CapacityBytes: 6}, 10); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.create(volume{ID: "b", CapacityBytes: 6}, 10); !errors.Is(err, errFull) {
		t.Errorf("create a second volume: %v, want %v", err, errFull)
	}
	if _, err := s.change("a", 10, func(v *volume) { v.CapacityBytes = 11 }); !errors.Is(err, errFull) {
		t.Errorf("expand the volume: %v, want %v", err, errFull)
	}
	if v, _ := s.get("a"); v.CapacityBytes != 6 {
		t.Errorf("capacity = %d after a rejected expansion, want 6", v.CapacityBytes)
	}
}

func TestFaultCountsRestartWhenFaultsAreSet(t *testing.T) {
	dir := t.TempDir()
	i := newInjector(dir)
	fault := Fault{Method: ledger.CreateVolume, Claim: "ns/data", Times: 1}
	hits := func() (n int) {
		for range 3 {
			f, _, err := i.next(ledger.CreateVolume, "ns/data")
			if err != nil {
				t.Fatal(err)
			}
			if f != nil {
				n++
			}
		}
		return n
	}
	for round, faults := range [][]Fault{{}, {fault}, {fault}, {}} {
		if err := SetFaults(dir, faults...); err != nil {
			t.Fatal(err)
		}
		if got := hits(); got != len(faults) {
			t.Errorf("round %d: %d calls failed, want %d", round, got, len(faults))
		}
		if f, _, err := i.next(ledger.CreateVolume, "ns/other"); f != nil || err != nil {
			t.Errorf("round %d: fault for another claim's call: %v, %v, want none", round, f, err)
		}
	}
}
