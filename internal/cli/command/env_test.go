package command

import (
	"bytes"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
)

func TestColour(t *testing.T) {
	for name, tc := range map[string]struct {
		flag, noColor string
		want          string
	}{
		"not a terminal":                   {colorAuto, "", "x"},
		"always":                           {colorAlways, "", "\x1b[31mx\x1b[0m"},
		"always, although NO_COLOR is set": {colorAlways, "1", "\x1b[31mx\x1b[0m"},
		"never":                            {colorNever, "", "x"},
		"NO_COLOR is set":                  {colorAuto, "1", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NO_COLOR", tc.noColor)
			out := &bytes.Buffer{}
			env := NewEnv(genericiooptions.IOStreams{In: out, Out: out, ErrOut: out}, clock.RealClock{})
			env.color = tc.flag
			if got := env.PaintOf(out).PaintBad("x"); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
