package guarded

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// An error caused by the end of a link is not reported, because no user can act on it.
func TestReconcilerAtTheEnd(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	settled := WrapReconciler(reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		end()
		return reconcile.Result{}, fmt.Errorf("list Pods: %w", ctx.Err())
	}))
	if result, err := settled.Reconcile(ctx, reconcile.Request{}); err != nil || !result.IsZero() {
		t.Errorf("result %v, error %v; want neither", result, err)
	}
}

func TestReconciler(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "web", errors.New("older"))
	other := errors.New("other")
	for name, tc := range map[string]struct {
		err    error
		result reconcile.Result
		fails  bool
	}{
		"no error":                            {nil, reconcile.Result{}, false},
		"a failed precondition":               {fmt.Errorf("patch: %w", conflict), reconcile.Result{RequeueAfter: cacheLagDelay}, false},
		"the fence is lost":                   {fmt.Errorf("patch: %w", ErrFenced), reconcile.Result{RequeueAfter: cacheLagDelay}, false},
		"destruction is suspended":            {fmt.Errorf("delete: %w", ErrSuspended), reconcile.Result{}, false},
		"a foreign object":                    {ErrForeign, reconcile.Result{}, true},
		"another error: retried with backoff": {other, reconcile.Result{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			settled := WrapReconciler(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{}, tc.err
			}))
			result, err := settled.Reconcile(t.Context(), reconcile.Request{})
			if result != tc.result || (err != nil) != tc.fails {
				t.Errorf("result %v, error %v; want result %v, and an error: %t", result, err, tc.result, tc.fails)
			}
		})
	}
}
