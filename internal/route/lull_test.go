package route

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

func TestQueue(t *testing.T) {
	for name, tc := range map[string]struct {
		// begin runs before Lull has elapsed.
		begin func(t *testing.T, q *Queue)
		want  []string
	}{
		"many events cause one reconcile": {func(_ *testing.T, q *Queue) {
			q.AddAfter(request("a"), Lull)
			q.AddAfter(request("b"), Lull)
			q.AddAfter(request("a"), Lull)
		}, []string{"a", "b"}},
		"a reconcile in the meantime drops the event": {func(t *testing.T, q *Queue) {
			t.Helper()
			q.AddAfter(request("a"), Lull)
			q.AddAfter(request("b"), Lull)
			q.Add(request("a"))
			finish(t, q, "a")
		}, []string{"b"}},
		"an event after the start of a reconcile is delayed": {func(t *testing.T, q *Queue) {
			t.Helper()
			q.AddAfter(request("a"), Lull)
			q.Add(request("a"))
			got, _ := q.Get()
			q.AddAfter(request("a"), Lull)
			q.Done(got)
		}, []string{"a"}},
		"a delay, an early reconcile, and another delay": {func(t *testing.T, q *Queue) {
			t.Helper()
			q.AddAfter(request("a"), Lull)
			q.Add(request("a"))
			finish(t, q, "a")
			q.AddAfter(request("b"), Lull)
		}, []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Unix(0, 0))
			q := NewQueue(workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()), clock)
			t.Cleanup(q.ShutDown)
			tc.begin(t, q)
			if n := q.Len(); n > 0 {
				t.Fatalf("%d requests were not delayed", n)
			}
			clock.Step(Lull)
			got := map[string]bool{}
			for range tc.want {
				r, _ := q.Get() // waits until the requests are released
				got[r.Name] = true
				q.Done(r)
			}
			for _, name := range tc.want {
				if !got[name] {
					t.Errorf("%q was not released", name)
				}
			}
			if n := q.Len(); n > 0 {
				t.Errorf("%d unexpected requests were released", n)
			}
		})
	}
}

func finish(t *testing.T, q *Queue, want string) {
	t.Helper()
	got, _ := q.Get()
	if got.Name != want {
		t.Fatalf("got %q", got.Name)
	}
	q.Done(got)
}

// The inner queue handles all other delays.
func TestQueuePassesOtherDelays(t *testing.T) {
	inner := &noting{}
	q := NewQueue(inner, clocktesting.NewFakeClock(time.Unix(0, 0)))
	q.AddAfter(request("a"), time.Minute)
	q.AddAfter(request("b"), Lull)
	if diff := cmp.Diff([]string{"a 1m0s"}, inner.added); diff != "" {
		t.Errorf("added (-want +got):\n%s", diff)
	}
}

func TestUnhurried(t *testing.T) {
	nodes := WhenChanged(func(pod *corev1.Pod) string { return pod.Spec.NodeName })
	version := func(pod *corev1.Pod, version string) *corev1.Pod {
		pod.ResourceVersion = version
		return pod
	}
	before, same := version(pod("a", "", one.NodeName), "1"), version(pod("a", "", one.NodeName), "2")
	bound := version(pod("a", one.NodeName, one.NodeName), "3")
	later, atOnce := "a "+Lull.String(), "a immediately"
	for name, tc := range map[string]struct {
		urgent  Urgent
		was, is client.Object
		want    string
	}{
		"an update that is not urgent":                     {nodes, before, same, later},
		"an urgent update":                                 {nodes, before, bound, atOnce},
		"a creation without the value":                     {nodes, nil, before, later},
		"a creation with the value":                        {nodes, nil, bound, atOnce},
		"a deletion with the value":                        {nodes, bound, nil, atOnce},
		"a creation, if creations are urgent":              {CreatedOrDeleted, nil, before, atOnce},
		"a deletion, if deletions are urgent":              {CreatedOrDeleted, before, nil, atOnce},
		"an update, if creations and deletions are urgent": {CreatedOrDeleted, before, bound, later},
		"a creation, if only deletions are urgent":         {Deleted, nil, before, later},
		"a deletion, if only deletions are urgent":         {Deleted, before, nil, atOnce},
		"a deletion, if no events are urgent":              {Never, before, nil, later},
	} {
		t.Run(name, func(t *testing.T) {
			r := routed(t, &reads{})
			fromHost, fromMember := &noting{}, &noting{}
			if err := Unhurried(tc.urgent, r.Source(one, &corev1.Pod{}, named)).Start(t.Context(), fromHost); err != nil {
				t.Fatal(err)
			}
			r.deliver(tc.was, tc.is)

			handler := Handler(named)
			in := source.Func(func(ctx context.Context, q queue) error {
				switch {
				case tc.was == nil:
					handler.Create(ctx, event.CreateEvent{Object: tc.is}, q)
				case tc.is == nil:
					handler.Delete(ctx, event.DeleteEvent{Object: tc.was}, q)
				default:
					handler.Update(ctx, event.UpdateEvent{ObjectOld: tc.was, ObjectNew: tc.is}, q)
				}
				return nil
			})
			if err := Unhurried(tc.urgent, in).Start(t.Context(), fromMember); err != nil {
				t.Fatal(err)
			}
			for side, q := range map[string]*noting{"host": fromHost, "member": fromMember} {
				for _, added := range q.added {
					if added != tc.want {
						t.Errorf("event of the %s: %s", side, added)
					}
				}
				if len(q.added) == 0 {
					t.Errorf("event of the %s: nothing was added", side)
				}
			}
		})
	}
}
