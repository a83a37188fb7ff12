package wording

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write testdata/rough.txt again")

const (
	module = "../.."
	// rough has the messages that break a rule since before there were rules. It may only
	// become shorter.
	rough = "testdata/rough.txt"
)

// Every message keeps the rules, those in testdata/rough.txt excepted: a new one is not
// added there, and one that was rewritten is removed from it.
func TestMessagesKeepTheStyle(t *testing.T) {
	all, err := messages(module, "internal")
	if err != nil {
		t.Fatal(err)
	}
	const least = 100
	if len(all) < least {
		t.Fatalf("%d messages were found in the source, want %d and more", len(all), least)
	}
	breaking := map[string][]string{}
	for _, m := range all {
		if why := broken(m.text); len(why) > 0 {
			breaking[fmt.Sprintf("%s\t%s", m.file, oneLine(m.text))] = append(why, fmt.Sprintf("line %d", m.line))
		}
	}
	if *update {
		var out bytes.Buffer
		for _, key := range sortedKeys(breaking) {
			fmt.Fprintln(&out, key)
		}
		if err := os.WriteFile(rough, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(filepath.Clean(rough))
	if err != nil {
		t.Fatal(err)
	}
	known := strings.Split(strings.TrimSpace(string(content)), "\n")
	for _, key := range sortedKeys(breaking) {
		if !slices.Contains(known, key) {
			t.Errorf("%s\n\t%s", key, strings.Join(breaking[key], "\n\t"))
		}
	}
	for _, key := range known {
		if key != "" && breaking[key] == nil {
			t.Errorf("%s has a message that is gone, or keeps the rules by now; remove the line: %s", rough, key)
		}
	}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func sortedKeys(m map[string][]string) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func TestBroken(t *testing.T) {
	for text, want := range map[string][]string{
		`no StorageClass %q in member %q (mapped from %q by spec.storage.classes). Create it there or change the mapping`: nil,
		"member %s lets go of it":         {`"lets go of": write "releases", or "abandons"`, `"member %s": write the name in quotes: %q`},
		"%d Pods run there":               {`"%d Pods": write a true plural: text.Count`},
		"make the class anew":             {`"anew": write "again", or "re-creates"`},
		"the volume stands for a leaf PV": {`"stands for": write "represents", or "has policy"`},
	} {
		if diff := cmp.Diff(want, broken(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// What becomes a message is found, whatever it is put together from.
func TestMessagesAreFound(t *testing.T) {
	dir := t.TempDir()
	source := `package p
func f() {
	r.Recorder.Eventf(pod, nil, "Warning", reason, "Push", "an event of %s", x)
	return refuse(reason, "a refusal " + "of parts")
	_ = Refusal{Reason: "R", Message: fmt.Sprintf("a field %s", "not this")}
	return fmt.Errorf("an error for the log %w", err)
}
`
	for _, folder := range []string{"internal/p", "internal/cli/p"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, folder, "p.go"), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := messages(dir, "internal")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, m := range all {
		got[m.file] = append(got[m.file], m.text)
	}
	want := []string{"an event of %s", "a refusal ", "of parts", "a field %s"}
	if diff := cmp.Diff(map[string][]string{
		"internal/p/p.go": want, "internal/cli/p/p.go": append(slices.Clone(want), "an error for the log %w"),
	}, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}
