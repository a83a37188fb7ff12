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

// behind is how long a reconcile that acted on an object that has changed, or
// gone, waits for that object's event, which as a rule comes within milliseconds.
const behind = time.Second

// errUnseen: an object that is to be created is there, and no cache shows it yet.
var errUnseen = errors.New("the cache lacks it")

// Unseen is the error of a create that failed because Xylem created the object before. Its event
// enqueues the request, but for an object that goes before the cache has seen it: so Settling
// looks again.
func Unseen(exists error) error { return fmt.Errorf("%w: %w", errUnseen, exists) }

// Settling is a reconciler for which a write that missed its precondition or its
// object, or a fence that is lost, is no error: the cache was behind, and the
// newer object enqueues it, or its link is about to end. Nor is what a link that ends
// cuts short: the next one begins with everything. Nor a destruction that waits for
// an admin.
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
			// The registration says so; the link is re-created when it is confirmed.
			ctrl.LoggerFrom(ctx).V(1).Info("waiting for an admin", "cause", err.Error())
			return reconcile.Result{}, nil
		}
		return result, err
	})
}
