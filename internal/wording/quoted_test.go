package wording

import "testing"

func TestQuoted(t *testing.T) {
	for want, names := range map[string][]string{"": nil, `"a"`: {"a"}, `"a", "b"`: {"a", "b"}} {
		if got := QuotedNames(names...); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
