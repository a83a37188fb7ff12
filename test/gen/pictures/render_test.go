package main

import (
	"strings"
	"testing"
)

func TestCheckFindsUnreadableText(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		texts []box
		want  string
	}{
		"readable":          {texts: []box{{Text: "host", Drawn: 4, Left: 10, Top: 10, Right: 40, Bottom: 22}, {Text: "Pod", Drawn: 3, Left: 10, Top: 20, Right: 40, Bottom: 32}}},
		"no text":           {want: "no text"},
		"collapsed spaces":  {texts: []box{{Text: "a   b", Drawn: 3, Right: 10, Bottom: 12}}, want: "3 of the 5 characters"},
		"out of the border": {texts: []box{{Text: "long", Drawn: 4, Left: 90, Right: 120, Bottom: 12}}, want: `"long" leaves the picture`},
		"overlapping":       {texts: []box{{Text: "left", Drawn: 4, Right: 50, Bottom: 12}, {Text: "right", Drawn: 5, Left: 45, Right: 90, Bottom: 12}}, want: `"left" and "right" overlap`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := (&rendered{Width: 100, Height: 100, Texts: tc.texts}).check()
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("check() = %v, want %q", err, tc.want)
			}
		})
	}
}
