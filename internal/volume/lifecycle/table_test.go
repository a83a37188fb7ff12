package lifecycle

import "testing"

func TestTable(t *testing.T) {
	for _, problem := range lifecycleTable.FindProblems() {
		t.Error(problem)
	}
}
