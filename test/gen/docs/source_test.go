package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestStrays checks that strays finds events and conditions whose reasons are not constants.
func TestStrays(t *testing.T) {
	for name, tc := range map[string]struct {
		code  string
		stray bool
	}{
		"an event's literal":         {`func f() { r.Recorder.Eventf(pod, nil, "Warning", "NameTaken", "Push", "%s", note) }`, true},
		"an event's constant":        {`func f() { r.Recorder.Eventf(pod, nil, "Warning", v1alpha1.ReasonNameTaken, "Push", "%s", note) }`, false},
		"a refusal's literal":        {`var r = mirror.Refusal{Reason: "NameTaken", Message: "taken"}`, true},
		"a refusal's variable":       {`var r = mirror.Refusal{Reason: problem.Reason, Message: "taken"}`, false},
		"a literal passed to refuse": {`func f() { refuse("NameTaken", "taken") }`, true},
		"a literal passed to Refuse": {`func f() { mirror.Refuse("NameTaken", "taken") }`, true},
		"a separate constant":        {`const reasonTaken = "NameTaken"`, true},
		"an alias":                   {`const reasonTaken = v1alpha1.ReasonNameTaken`, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, code := range map[string]string{"a.go": tc.code, "a_test.go": `const reasonInTest = "X"`} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte("package a\n"+code), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := strays(dir); tc.stray != (err != nil) {
				t.Errorf("strays returned %v, want an error: %t", err, tc.stray)
			}
		})
	}
	if err := strays("no such directory"); err == nil {
		t.Error("strays accepted a directory that does not exist")
	}
}

// TestPages checks that the pages are consistent with the code.
func TestPages(t *testing.T) {
	t.Chdir("../../..")
	for path, part := range map[string]string{"internal/REASONS.md": "| `NameTaken` |", "internal/METRICS.md": "| `xylem_writes_total` | counter | `cluster`, `side`, `kind`, `verb`, `result` |"} {
		page, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(page), part) {
			t.Errorf("%s lacks %q: %v", path, part, err)
		}
	}
	if err := run(true); err != nil {
		t.Error(err)
	}
}
