package member

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/internal/mirror"
)

// Only a change of a record enqueues requests, so that retries do not.
func TestRejections(t *testing.T) {
	var r NamespaceRejections
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	if err := r.RejectionChangeSource(func(_ context.Context, namespace string) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: namespace}}}
	}).Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		namespace, why string
		changes        bool
	}{
		{"shop", "", false}, {"shop", "no", true}, {"shop", "no", false}, {"web", "", false}, {"shop", "never", true}, {"shop", "", true}, {"shop", "", false},
	} {
		var why *mirror.Refusal
		if step.why != "" {
			why = mirror.NewRefusal("reason", "%s", step.why)
		}
		r.SetRejection(step.namespace, why)
		if changes := queue.Len() > 0; changes != step.changes {
			t.Fatalf("%+v: enqueued: %t", step, changes)
		}
		if step.changes {
			request, _ := queue.Get()
			queue.Done(request)
			if request.Name != step.namespace {
				t.Errorf("%+v: enqueued %v", step, request)
			}
		}
		if diff := cmp.Diff(why, r.RejectionOf(step.namespace)); diff != "" {
			t.Errorf("%+v: record (-want +got):\n%s", step, diff)
		}
	}
}
