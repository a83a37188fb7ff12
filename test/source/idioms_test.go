package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTextHasNoTranslatedIdioms checks that no text in the repository contains a phrase that reads
// as translated.
func TestTextHasNoTranslatedIdioms(t *testing.T) {
	all, err := prose(root)
	if err != nil {
		t.Fatal(err)
	}
	const least = 10_000
	if len(all) < least {
		t.Fatalf("%d texts were found, want at least %d", len(all), least)
	}
	for _, m := range all {
		if why := brokenRules(idioms, m.text); len(why) > 0 {
			t.Errorf("%s:%d: %.300q\n\t%s", m.file, m.line, m.text, strings.Join(why, "\n\t"))
		}
	}
}

func TestIdioms(t *testing.T) {
	for text, want := range map[string][]string{
		"remove the finalizer by hand":                        {`"by hand": write "manually"`},
		"it writes for ever":                                  {`"for ever": write "forever"`},
		"a write is under way":                                {`"under way": write "in progress"`},
		"its data stay in the member":                         {`"its data stay": write "data is", "data stays"`},
		"the claim is to be created from a snapshot":          {`"is to be created": write "will be", or "must be"`},
		"nothing needs it any more.":                          {`"any more.": write "no longer"`},
		"the leaf PV is put to Delete":                        {`"put to Delete": write "set to Delete"`},
		"the condition says why":                              {`"condition says why": write "shows", or "reports"`},
		"the same, without a leaf claim":                      {`"the same,": write what the case is`},
		"Node \"a\" exists already":                           {`"exists already": write "already exists"`},
		"run `kubectl by hand`":                               nil,
		"on the other hand, a claim has no more than one":     nil,
		"the disk is deleted with its claim":                  nil,
		"it is the same, and the object already exists":       nil,
		"if any more Pods need the data, or all the same one": nil,
		"the member's data stays, and nothing is taken":       nil,
	} {
		if diff := cmp.Diff(want, brokenRules(idioms, text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// TestProseIsFound checks that prose finds every kind of text, and joins its lines.
func TestProseIsFound(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"internal/p/p.go": "// Package p is\n// documented.\npackage p\n\nfunc f() { g(\"a text of words\", \"name\") }\n",
		"README.md":       "# Title\n\nA paragraph\nof two lines.\n\n```sh\nmake test\n```\n\n    indented code\n",
		"config/a.yaml":   "# A comment\n# of two lines.\nkind: Pod # and another\n",
		"Makefile":        "test: ## Run the tests.\n",
		"test/kube/a.md":  "outside\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := prose(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []message{
		{"Makefile", 1, "Run the tests."},
		{"README.md", 1, "# Title"},
		{"README.md", 3, "A paragraph of two lines."},
		{"config/a.yaml", 1, "A comment of two lines. and another"},
		{"internal/p/p.go", 1, "Package p is documented."},
		{"internal/p/p.go", 5, "a text of words"},
	}
	if diff := cmp.Diff(want, all, cmp.AllowUnexported(message{})); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
}
