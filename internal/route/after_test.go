package route

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// noting is a queue that records the requests that are added to it, and their delays.
type noting struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	added []string
}

func (n *noting) AddAfter(request reconcile.Request, after time.Duration) {
	n.added = append(n.added, request.Name+" "+after.String())
}

func (n *noting) Add(request reconcile.Request) {
	n.added = append(n.added, request.Name+" immediately")
}

func named(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
}

func TestPaced(t *testing.T) {
	paced := PacedHandler(func(before, after client.Object) time.Duration {
		switch {
		case before == nil:
			return time.Minute
		case after == nil:
			return time.Second
		}
		return 0
	}, named)
	a, b := claim("a", "", ""), claim("b", "", "")
	for name, tc := range map[string]struct {
		tell func(queue)
		want []string
	}{
		"created": {func(q queue) { paced.Create(t.Context(), event.CreateEvent{Object: a}, q) }, []string{"a 1m0s"}},
		"changed": {func(q queue) { paced.Update(t.Context(), event.UpdateEvent{ObjectOld: a, ObjectNew: b}, q) }, []string{"a 0s", "b 0s"}},
		"deleted": {func(q queue) { paced.Delete(t.Context(), event.DeleteEvent{Object: b}, q) }, []string{"b 1s"}},
	} {
		t.Run(name, func(t *testing.T) {
			q := &noting{}
			tc.tell(q)
			if diff := cmp.Diff(tc.want, q.added); diff != "" {
				t.Errorf("added (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSinceStart(t *testing.T) {
	p := SinceStartPredicate()
	object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	if p.Create(event.CreateEvent{Object: object, IsInInitialList: true}) {
		t.Error("an existing object was enqueued")
	}
	if !p.Create(event.CreateEvent{Object: object}) || !p.Update(event.UpdateEvent{ObjectOld: object, ObjectNew: object}) || !p.Delete(event.DeleteEvent{Object: object}) {
		t.Error("a later creation was not enqueued")
	}
}
