package guarded

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// behind is how long a reconcile waits for the event of an object that has changed or was deleted.
// The event usually comes within milliseconds.
const behind = time.Second

// errUnseen: an object to create exists, and the cache does not have it yet.
var errUnseen = errors.New("the cache lacks it")

// Unseen is the error of a create that failed because Xylem created the object before. The
// object's event enqueues the request, unless the object is deleted before the cache has it. So
// Settling requeues the request.
func Unseen(exists error) error { return fmt.Errorf("%w: %w", errUnseen, exists) }

// Settling wraps a reconciler, and does not treat the following as errors. If a write missed
// its precondition or its object, the cache was behind, and the newer object enqueues the
// request. If the fence is lost or the link is ending, the next link reconciles everything. If
// a destruction waits for an admin, the registration reports it.
func Settling(r reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		result, err := r.Reconcile(ctx, request)
		if err != nil && ctx.Err() != nil {
			ctrl.LoggerFrom(ctx).V(1).Info("cut short", "cause", err.Error())
			return reconcile.Result{}, nil
		}
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || errors.Is(err, ErrFenced) || errors.Is(err, errUnseen) {
			ctrl.LoggerFrom(ctx).V(1).Info("waiting for the cache", "cause", err.Error())
			return reconcile.Result{RequeueAfter: behind}, nil
		}
		if errors.Is(err, ErrSuspended) {
			// The registration reports it. The link is re-created when an admin confirms.
			ctrl.LoggerFrom(ctx).V(1).Info("waiting for an admin", "cause", err.Error())
			return reconcile.Result{}, nil
		}
		return result, err
	})
}
