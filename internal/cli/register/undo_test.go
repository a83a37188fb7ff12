package register

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// The latest first; what cannot be undone is named, with the way to do it by hand, and
// does not keep the rest.
func TestRollback(t *testing.T) {
	var j journal
	var order []string
	undo := func(what string, err error) {
		j.did(what, "kubectl delete "+what, func(context.Context) error {
			order = append(order, what)
			return err
		})
	}
	undo("a", nil)
	undo("b", errors.New("no"))
	undo("c", nil)
	cause := errors.New("it failed")
	err := j.rollback(t.Context(), cause)
	if !errors.Is(err, cause) || strings.Join(order, "") != "cba" {
		t.Errorf("undone %v, error %v", order, err)
	}
	for _, words := range []string{"Undone: c, a", "Left, to be undone by hand:\n  b (no): kubectl delete b"} {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("%q lacks %q", err, words)
		}
	}
	if err := new(journal).rollback(t.Context(), cause); !strings.Contains(err.Error(), "Nothing was changed") {
		t.Errorf("of nothing it says %q", err)
	}
}
