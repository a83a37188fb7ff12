package inspect

import "testing"

// TestSplit checks messages of the form `what happened: why. What to do.`, including those that
// quote others.
func TestSplit(t *testing.T) {
	for message, want := range map[string][2]string{
		"":                                 {"", ""},
		"it failed":                        {"it failed", ""},
		"it failed.":                       {"it failed", ""},
		"it failed: no. Try this":          {"it failed: no", "Try this."},
		"it failed: v1.36.3 of a.b.c":      {"it failed: v1.36.3 of a.b.c", ""},
		"it failed. Try this. Or do that.": {"it failed", "Try this. Or do that."},
		"it failed: \"no. Retries later. Sorry\". Change it":   {"it failed: \"no. Retries later. Sorry\"", "Change it."},
		`none is Ready. Pod "app": member "a" does not let it`: {`none is Ready. Pod "app": member "a" does not let it`, ""},
		"is unknown: did you mean x? Delete it":                {"is unknown: did you mean x?", "Delete it."},
		"it failed. `kubectl get x` shows":                     {"it failed", "`kubectl get x` shows."},
	} {
		if what, toDo := split(message); what != want[0] || toDo != want[1] {
			t.Errorf("split(%q) returned %q, %q, want %q", message, what, toDo, want)
		}
	}
}
