package lifecycle

import "testing"

func TestTable(t *testing.T) {
	for _, problem := range table.Problems() {
		t.Error(problem)
	}
}
