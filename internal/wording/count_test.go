package wording

import "testing"

func TestCount(t *testing.T) {
	for want, tc := range map[string]struct {
		n    int
		name string
	}{
		"0 Pods": {0, "Pod"}, "1 Pod": {1, "Pod"}, "2 Pods": {2, "Pod"}, "1 class": {1, "class"}, "3 classes": {3, "class"},
		"2 policies": {2, "policy"}, "2 days": {2, "day"},
	} {
		if got := CountNoun(tc.n, tc.name); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
