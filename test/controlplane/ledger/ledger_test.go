package ledger_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xylem-io/xylem/test/controlplane/ledger"
)

func create(id, claim string) ledger.Entry {
	return ledger.Entry{
		Method: ledger.CreateVolume, Code: ledger.OK, VolumeID: id, VolumeName: "pvc-" + id,
		CapacityBytes: 10, ClaimNamespace: "ns", ClaimName: claim,
	}
}

func TestCounts(t *testing.T) {
	repeated := create("a", "data")
	repeated.Repeated = true
	failed := ledger.Entry{Method: ledger.CreateVolume, Code: "ResourceExhausted", ClaimNamespace: "ns", ClaimName: "big"}
	lost := create("b", "lost")
	lost.Code, lost.ReplyLost = "Unavailable", true

	tests := map[string]struct {
		entries  []ledger.Entry
		live     []string
		creates  int
		deletes  int
		attempts int
	}{
		"empty": {},
		"made":  {entries: []ledger.Entry{create("a", "data")}, live: []string{"a"}, creates: 1, attempts: 1},
		"a repeated creation counts once": {
			entries: []ledger.Entry{create("a", "data"), repeated}, live: []string{"a"}, creates: 1, attempts: 2,
		},
		"a failed creation does not count": {entries: []ledger.Entry{failed}, attempts: 1},
		"a creation with a lost response counts": {
			entries: []ledger.Entry{lost}, live: []string{"b"}, creates: 1, attempts: 1,
		},
		"deleted": {
			entries: []ledger.Entry{
				create("a", "data"),
				{Method: ledger.DeleteVolume, Code: ledger.OK, VolumeID: "a"},
				{Method: ledger.DeleteVolume, Code: ledger.OK, VolumeID: "a", Repeated: true},
			},
			creates: 1, deletes: 1, attempts: 1,
		},
		"a volume exists after a failed deletion": {
			entries: []ledger.Entry{
				create("a", "data"), {Method: ledger.DeleteVolume, Code: "Internal", VolumeID: "a"},
			},
			live: []string{"a"}, creates: 1, attempts: 1,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := &ledger.Ledger{Entries: tt.entries}
			if diff := cmp.Diff(tt.live, l.LiveIDs()); diff != "" {
				t.Errorf("live volumes (-want +got):\n%s", diff)
			}
			got := []int{l.Count(ledger.CreateVolume), l.Count(ledger.DeleteVolume), l.Calls(ledger.CreateVolume)}
			if diff := cmp.Diff([]int{tt.creates, tt.deletes, tt.attempts}, got); diff != "" {
				t.Errorf("creates, deletes, attempts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExpansionShowsInLive(t *testing.T) {
	l := &ledger.Ledger{Entries: []ledger.Entry{
		create("a", "data"),
		{Method: ledger.ExpandVolume, Code: ledger.OK, VolumeID: "a", CapacityBytes: 20},
		{Method: ledger.ExpandVolume, Code: "OutOfRange", VolumeID: "a", CapacityBytes: 1000},
	}}
	if got := l.Live()["a"].CapacityBytes; got != 20 {
		t.Errorf("capacity = %d, want 20", got)
	}
}

func TestForClaim(t *testing.T) {
	l := &ledger.Ledger{Entries: []ledger.Entry{
		create("a", "data"), create("b", "other"),
		{Method: ledger.DeleteVolume, Code: ledger.OK, VolumeID: "b"},
		{Method: ledger.DeleteVolume, Code: ledger.OK, VolumeID: "a"},
	}}
	if got := len(l.ForClaim("ns", "data").Entries); got != 2 {
		t.Errorf("entries = %d, want 2: the creation and the deletion", got)
	}
	if got := len(l.ForNamespace("ns").Entries); got != 4 {
		t.Errorf("entries of the namespace = %d, want 4: both creations and deletions", got)
	}
	if got := len(l.ForNamespace("other").Entries); got != 0 {
		t.Errorf("entries of another namespace = %d, want none", got)
	}
	if got := len(l.Since(3).Entries); got != 1 {
		t.Errorf("entries after the first three = %d, want 1", got)
	}
	if got := len(l.Since(99).Entries); got != 0 {
		t.Errorf("entries past the end = %d, want none", got)
	}
}

func TestIncompleteLineIsRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	write(t, path, create("a", "data"))
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"method":"CreateVol`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}

	read(t, path, 1)
	write(t, path, create("b", "data"))
	read(t, path, 2)
}

func TestMissingLedgerIsEmpty(t *testing.T) {
	read(t, filepath.Join(t.TempDir(), "none"), 0)
}

func write(t *testing.T, path string, entries ...ledger.Entry) {
	t.Helper()
	w, err := ledger.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := w.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string, want int) {
	t.Helper()
	l, err := ledger.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Entries) != want {
		t.Errorf("entries = %d, want %d", len(l.Entries), want)
	}
}
