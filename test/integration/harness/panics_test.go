package harness

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const recovered = `2026-11-22T23:00:00Z	ERROR	Observed a panic	{"panic": "nil pointer dereference", "stacktrace": "goroutine 9 [running]:\npanic({0x1, 0x2})\n\t/go/panic.go:1\nrootpvc.(*reconciler).say(...)\n\t/src/act.go:9\n"}` + "\n"

// TestPanics checks that each panic fails one story, and that a panic after the last story makes
// Stop return an error.
func TestPanics(t *testing.T) {
	dir := t.TempDir()
	managers := []*Manager{{log: filepath.Join(dir, "one")}, {log: filepath.Join(dir, "two")}, {log: filepath.Join(dir, "never started")}}
	x := &Xylem{managers: managers}
	write := func(i int, text string) {
		f, err := os.OpenFile(managers[i].log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(what, want string) {
		t.Helper()
		switch err := x.Panics(); {
		case want == "" && err != nil:
			t.Errorf("%s: %v", what, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: no %q in %v", what, want, err)
		}
	}
	expect("no manager has been started", "")
	write(0, "all is well\n")
	write(1, "all is well\n")
	expect("all is well", "")
	write(0, recovered)
	expect("a reconcile panicked", "act.go:9")
	expect("the panic has already been reported", "")
	write(0, recovered[:20])
	expect("half a line", "")
	write(0, recovered[20:])
	expect("the whole panic", "act.go:9")
	write(1, recovered)
	if err := x.Stop(t.Context()); err == nil || !strings.Contains(err.Error(), "act.go:9") {
		t.Errorf("Stop returned %v after an unreported panic, want an error with act.go:9", err)
	}
}
