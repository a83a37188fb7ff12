package register

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestRollback(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "a", nil)
	lost := errors.New("connection reset by peer")
	type write struct {
		what string
		err  error // the write's error
		// there makes Undo find the object. stuck is Undo's error.
		there bool
		stuck error
	}
	for name, c := range map[string]struct {
		writes  []write
		updated []string
		want    string
	}{
		"no write":                       {want: "Nothing was changed"},
		"a rejected write is not undone": {writes: []write{{what: "a", err: refused, there: true}}, want: "Nothing was changed"},
		"the response was lost, but the object was created": {
			writes: []write{{what: "a", there: true}, {what: "b", err: lost, there: true}}, want: "Undone: b, a",
		},
		"the response was lost, and the object was not created": {writes: []write{{what: "b", err: lost}}, want: "Nothing was changed"},
		"rollback stops at the first failure": {
			writes: []write{{what: "a", there: true}, {what: "b", there: true, stuck: lost}, {what: "c", there: true}},
			want:   "Undone: c\nSome changes were not undone. Undo them manually, in this order:\n  b (connection reset by peer): rm b\n  a: rm a",
		},
		"changed objects are listed": {
			writes: []write{{what: "a", there: true}}, updated: []string{"role"},
			want: "Undone: a\nChanged and not restored: role",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var j journal
			for _, w := range c.writes {
				s := undoStep{What: w.what, By: "rm " + w.what, Undo: func(context.Context) (bool, error) { return w.there, w.stuck }}
				if err := j.DoAndRemember(s, func() error { return w.err }); !errors.Is(err, w.err) {
					t.Fatal(err)
				}
			}
			for _, what := range c.updated {
				j.changedObjects(what)
			}
			cause := errors.New("broken")
			err := j.RollBackChanges(t.Context(), cause)
			if !errors.Is(err, cause) {
				t.Errorf("the error does not wrap its cause: %v", err)
			}
			if diff := cmp.Diff("broken\n"+c.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
