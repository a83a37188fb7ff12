package guarded

import (
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestCut(t *testing.T) {
	for name, tc := range map[string]struct {
		text  string
		limit int
		want  string
	}{
		"short":          {"abc", 4, "abc"},
		"fits":           {"abcd", 4, "abcd"},
		"long":           {"abcdefgh", 6, "abc…"},
		"in a character": {"abücdefg", 6, "ab…"},
	} {
		t.Run(name, func(t *testing.T) {
			got := cut(tc.text, tc.limit)
			if diff := cmp.Diff(tc.want, got); diff != "" || !utf8.ValidString(got) {
				t.Errorf("cut (-want +got):\n%s", diff)
			}
		})
	}
}
