package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExcerpt(t *testing.T) {
	const output = "intro\n\n\x1b[1m== 1 of 3: Clusters\x1b[0m\nup\n\n\x1b[1m== 2 of 3: A claim and a Deployment, here\x1b[0m\n  applied \n\x1b[1m== 3 of 3: Next\x1b[0m\nno\n\n\x1b[1m== Summary\x1b[0m\nno\n"
	const want = "\x1b[1m== 2 of 3: A claim and a Deployment, here\x1b[0m\n  applied\n\x1b[32mAll 7 checks passed\x1b[0m, after 9 s.\n"
	tests := map[string]struct {
		output, want string
		fails        bool
	}{
		"section and verdict": {output: output + "\x1b[32mAll 7 checks passed\x1b[0m, after 9 s.\n", want: want},
		"no verdict":          {output: output, fails: true},
		"no section":          {output: "== Next\nAll 7 checks passed\n", fails: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := excerpt(tc.output)
			if (err != nil) != tc.fails {
				t.Fatalf("error %v, want one: %t", err, tc.fails)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestSpans(t *testing.T) {
	p := palettes[0]
	tests := map[string]struct {
		line string
		want []span
	}{
		"plain":          {line: "text", want: []span{{text: "text", color: p.Fore}}},
		"bold and reset": {line: "\x1b[1ma\x1b[0mb", want: []span{{text: "a", color: p.Fore, bold: true}, {text: "b", color: p.Fore}}},
		"two parameters": {line: "\x1b[1;32mok\x1b[m", want: []span{{text: "ok", color: p.Green, bold: true}}},
		"empty":          {},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, spans(tc.line, p), cmp.AllowUnexported(span{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Browsers collapse plain spaces, and so would squeeze the columns of a table into each other.
func TestTerminalKeepsSpaces(t *testing.T) {
	picture := string(terminal("NAME   READY", palettes[0]))
	if want := ">NAME\u00a0\u00a0\u00a0READY</text>"; !strings.Contains(picture, want) {
		t.Errorf("no %q in:\n%s", want, picture)
	}
}

// TestPictures checks that every picture is well-formed XML and up to date.
func TestPictures(t *testing.T) {
	dir := filepath.Join("..", "..", "..", directory)
	pictures, err := draw(dir)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range pictures {
		decoder := xml.NewDecoder(strings.NewReader(string(want)))
		for err = nil; err == nil; {
			_, err = decoder.Token()
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s is not well-formed: %v", path, err)
		}
		if has, err := os.ReadFile(path); err != nil || string(has) != string(want) {
			t.Errorf("%s is out of date: run make pictures", path)
		}
	}
}
