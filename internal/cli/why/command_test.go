package why

import (
	"strings"
	"testing"
	"time"

	"github.com/xylem-io/xylem/internal/cli/inspect"
)

// If two conditions report one problem, what to do is printed once.
func TestToDoIsPrintedOnce(t *testing.T) {
	cause := func(what, toDo string) Cause {
		return Cause{ObjectRef: ObjectRef{Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data"}, What: what, ToDo: toDo}
	}
	var out strings.Builder
	page{inspect.Page{Out: &out, Now: time.Unix(1e9, 0)}}.printDiagnosis(&Diagnosis{
		Verdict: Problem, Summary: "Claim is lost", ToDo: "Restore the backup.",
		Causes: []Cause{
			cause("the disk is gone", "Restore the backup."), cause("the promise is broken", "Restore the backup."),
			cause("it cannot be expanded", "Request less."), cause("nor copied", "Request less."),
		},
	})
	for want, times := range map[string]int{"Restore the backup.": 1, "Request less.": 1, "the promise is broken.": 1, "nor copied.": 1} {
		if got := strings.Count(out.String(), want); got != times {
			t.Errorf("%q is printed %d times, want %d:\n%s", want, got, times, out.String())
		}
	}
}
