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

// cacheLagDelay is the maximum time that a request waits for the event of a changed or deleted object. The
// event usually comes within milliseconds.
const cacheLagDelay = time.Second

// errUnseen reports that an object to create already exists, but is not in the cache yet.
var errUnseen = errors.New("the object is not in the cache yet")

// NewUnseenError returns the error for a create that failed because Xylem created the object before. The
// object's event enqueues the request, unless the object is deleted before it reaches the cache.
// Therefore, WrapReconciler also requeues the request.
func NewUnseenError(exists error) error { return fmt.Errorf("%w: %w", errUnseen, exists) }

// WrapReconciler wraps a reconciler, and does not return the errors that a retry with backoff would not
// resolve. If a write's precondition failed or its object was not found, the cache was behind, and
// the newer object enqueues the request. If the fence is lost or the link is ending, the next link
// reconciles everything. If destruction is suspended, the registration reports it.
func WrapReconciler(r reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		result, err := r.Reconcile(ctx, request)
		if err != nil && ctx.Err() != nil {
			ctrl.LoggerFrom(ctx).V(1).Info("reconcile interrupted", "cause", err.Error())
			return reconcile.Result{}, nil
		}
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || errors.Is(err, ErrFenced) || errors.Is(err, errUnseen) {
			ctrl.LoggerFrom(ctx).V(1).Info("waiting for the cache", "cause", err.Error())
			return reconcile.Result{RequeueAfter: cacheLagDelay}, nil
		}
		if errors.Is(err, ErrSuspended) {
			// The registration reports the suspension. The link is re-created when an admin
			// confirms.
			ctrl.LoggerFrom(ctx).V(1).Info("waiting for an admin to confirm a restore", "cause", err.Error())
			return reconcile.Result{}, nil
		}
		return result, err
	})
}
