package docs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBlocks(t *testing.T) {
	const page = "# Title\n\n```sh\nmake test # all\n```\n\n```yaml\nkind: Pod\n```\n\n<!-- not run: needs an engine -->\n\n```sh\nmake image\n```\n\n" +
		"<!-- not run: of another block -->\ntext\n```console\n$ ls\n```\n\n````md\n```sh\nquoted\n```\n````\n"
	want := []Block{
		{Page: "p.md", Line: 3, Commands: "make test # all\n"},
		{Page: "p.md", Line: 13, Commands: "make image\n", NotRun: "needs an engine"},
		{Page: "p.md", Line: 19, Commands: "$ ls\n"},
	}
	got, err := Blocks("p.md", page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := Blocks("p.md", "```sh\nmake\n"); err == nil {
		t.Error("a code block that is not closed was accepted")
	}
}

func TestScript(t *testing.T) {
	got := Script([]Block{
		{Page: "p.md", Line: 3, Commands: "export A=1\n"},
		{Page: "p.md", Line: 9, Commands: "false\n", NotRun: "why"},
		{Page: "p.md", Line: 12, Commands: "echo $A\n"},
	})
	want := "set -euo pipefail\necho '### p.md:3'\nexport A=1\necho '### p.md:12'\necho $A\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
