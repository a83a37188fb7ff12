package command

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
)

func TestOutputIsPlain(t *testing.T) {
	const emoji = "caf\u00e9 \U0001f332"
	for name, tc := range map[string]struct {
		color string
		write []string
		want  string
	}{
		"text":               {colorNever, []string{"a\tb\n", emoji}, "a\tb\n" + emoji},
		"an escape sequence": {colorNever, []string{"a\x1b[2Jb"}, "a[2Jb"},
		"an escape sequence that sets the clipboard":  {colorNever, []string{"\x1b]52;c;AAAA\x07x"}, "]52;c;AAAAx"},
		"an 8-bit escape sequence":                    {colorNever, []string{"a\u009b2Jb\u009d52\u009c"}, "a2Jb52"},
		"carriage return, backspace":                  {colorNever, []string{"true\rfalse\b\x7f\x00\x0b"}, "truefalse"},
		"direction marks":                             {colorNever, []string{"a\u202eb\u2066c\u2069\u200e\u061c"}, "abc"},
		"characters without width":                    {colorNever, []string{"a\u200bb\ufeffc\u2060"}, "abc"},
		"invalid UTF-8":                               {colorNever, []string{"a\xffb\xc3"}, "ab"},
		"a character split across two writes":         {colorNever, []string{"caf\xc3", "\xa9"}, "caf\u00e9"},
		"a direction mark split across two writes":    {colorNever, []string{"a\xe2\x80", "\xaeb"}, "ab"},
		"the plugin's colors":                         {colorAlways, []string{"\x1b[32mgood\x1b[0m"}, "\x1b[32mgood\x1b[0m"},
		"the plugin's colors split across two writes": {colorAlways, []string{"\x1b[3", "2mgood\x1b", "[0m"}, "\x1b[32mgood\x1b[0m"},
		"other sequences, colors enabled":             {colorAlways, []string{"\x1b[31;5mx\x1b[", "2Jy"}, "[31;5mx[2Jy"},
		"the plugin's colors, colors disabled":        {colorNever, []string{"\x1b[32mgood\x1b[0m"}, "[32mgood[0m"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut := &bytes.Buffer{}, &bytes.Buffer{}
			env := NewEnv(genericiooptions.IOStreams{In: out, Out: out, ErrOut: errOut}, clock.RealClock{})
			env.color = tc.color
			for _, text := range tc.write {
				if n, err := env.Out.Write([]byte(text)); err != nil || n != len(text) {
					t.Fatalf("wrote %d of %d bytes: %v", n, len(text), err)
				}
				if _, err := env.ErrOut.Write([]byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			for _, got := range []string{out.String(), errOut.String()} {
				if got != tc.want {
					t.Errorf("got %q, want %q", got, tc.want)
				}
			}
		})
	}
}

func TestOutputForProgramsIsExact(t *testing.T) {
	out := &bytes.Buffer{}
	env := NewEnv(genericiooptions.IOStreams{In: out, Out: out, ErrOut: out}, clock.RealClock{})
	const said = "{\"message\":\"a\u202e\u200bb\\u001b\"}\n"
	if _, err := env.MachineOut().Write([]byte(said)); err != nil {
		t.Fatal(err)
	}
	if out.String() != said {
		t.Errorf("got %q, want %q", out, said)
	}
}

func FuzzStripped(f *testing.F) {
	f.Add([]byte("\x1b[32mx\x1b[0m\x1b["), 3)
	f.Fuzz(func(t *testing.T, text []byte, cut int) {
		out, errOut := &bytes.Buffer{}, &bytes.Buffer{}
		env := NewEnv(genericiooptions.IOStreams{In: out, Out: out, ErrOut: errOut}, clock.RealClock{})
		env.color = colorAlways
		cut = min(max(cut, 0), len(text))
		for _, part := range [][]byte{text[:cut], text[cut:]} {
			if _, err := env.Out.Write(part); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := env.ErrOut.Write(text); err != nil {
			t.Fatal(err)
		}
		if out.String() != errOut.String() {
			t.Errorf("two writes produced %q, but one write produced %q", out, errOut)
		}
		left := out.String()
		for _, own := range colours {
			left = strings.ReplaceAll(left, string(own), "")
		}
		if strings.ContainsFunc(left, obeyedSequences) {
			t.Errorf("%q contains characters that a terminal interprets", left)
		}
	})
}
