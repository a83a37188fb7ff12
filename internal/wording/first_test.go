package wording

import "testing"

func TestFirstNames(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	for want, tc := range map[string]struct {
		most      int
		separator string
	}{
		"a, b, c, d": {4, ", "}, "a, b, c, and 1 more": {3, ", "}, "a; b; and 2 more": {2, "; "},
	} {
		if got := FirstNames(names, tc.most, tc.separator); got != want {
			t.Errorf("the first %d names: %q, want %q", tc.most, got, want)
		}
	}
	if got := FirstNames(nil, 2, ", "); got != "" {
		t.Errorf("no names: %q", got)
	}
	if names[2] != "c" {
		t.Errorf("FirstNames changes its argument: %q", names)
	}
}
