package lifecycle

import (
	"slices"
	"testing"
)

// Every row has an owner, a readable description, and either a step or an end of its wait.
func TestEveryRowIsWhole(t *testing.T) {
	used := map[Step]bool{}
	for _, section := range table {
		if slices.ContainsFunc(section.when, func(f fact) bool { return f.text == "" }) {
			t.Errorf("section %q has a condition without a text", section.title)
		}
		for i, r := range section.rows {
			if slices.ContainsFunc(r.when, func(f fact) bool { return f.text == "" }) {
				t.Errorf("row %d of %q has a condition without a text", i, section.title)
			}
			if (r.step == None) == (r.until == "") {
				t.Errorf("row %d of %q has step %q, and waits until %q", i, section.title, r.step, r.until)
			}
			if r.owner == "" && r.phase != Foreign || r.phase == "" {
				t.Errorf("row %d of %q has phase %q, and owner %q", i, section.title, r.phase, r.owner)
			}
			if (r.report == nil) != (r.reason == "") {
				t.Errorf("row %d of %q reports without a reason, or the other way round", i, section.title)
			}
			used[r.step] = true
		}
	}
	for _, s := range steps {
		if !used[s.step] {
			t.Errorf("no row has step %s", s.step)
		}
		delete(used, s.step)
	}
	for step := range used {
		if step != None {
			t.Errorf("step %s is not described", step)
		}
	}
}
