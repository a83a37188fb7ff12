package route

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

func TestQueue(t *testing.T) {
	for name, tc := range map[string]struct {
		// begin runs before LowUrgencyDelay has elapsed.
		begin func(t *testing.T, q *Queue)
		want  []string
	}{
		"many events cause one reconcile": {func(_ *testing.T, q *Queue) {
			q.AddAfter(request("a"), LowUrgencyDelay)
			q.AddAfter(request("b"), LowUrgencyDelay)
			q.AddAfter(request("a"), LowUrgencyDelay)
		}, []string{"a", "b"}},
		"a reconcile in the meantime drops the event": {func(t *testing.T, q *Queue) {
			t.Helper()
			q.AddAfter(request("a"), LowUrgencyDelay)
			q.AddAfter(request("b"), LowUrgencyDelay)
			q.Add(request("a"))
			finish(t, q, "a")
		}, []string{"b"}},
		"an event after the start of a reconcile is delayed": {func(t *testing.T, q *Queue) {
			t.Helper()
			q.AddAfter(request("a"), LowUrgencyDelay)
			q.Add(request("a"))
			got, _ := q.Get()
			q.AddAfter(request("a"), LowUrgencyDelay)
			q.Done(got)
		}, []string{"a"}},
		"a delay, an early reconcile, and another delay": {func(t *testing.T, q *Queue) {
			t.Helper()
			q.AddAfter(request("a"), LowUrgencyDelay)
			q.Add(request("a"))
			finish(t, q, "a")
			q.AddAfter(request("b"), LowUrgencyDelay)
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
			clock.Step(LowUrgencyDelay)
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

// After a start, the inner queue stays short, and urgent requests do not wait for all others.
func TestQueueStaysShort(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	q := NewQueue(workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()), clock)
	t.Cleanup(q.ShutDown)
	const all = 3 * innerQueueLimit
	for i := range all {
		q.AddAfter(request(strconv.Itoa(i)), LowUrgencyDelay)
	}
	clock.Step(LowUrgencyDelay)
	q.AddAfter(request("later"), LowUrgencyDelay)
	clock.Step(LowUrgencyDelay)
	q.Add(request("urgent"))
	got := map[string]int{}
	for i := range all + 2 {
		r, _ := q.Get() // the first one waits until the requests are released
		if got[r.Name]++; r.Name == "urgent" && i > innerQueueLimit+1 {
			t.Errorf("%d requests preceded the urgent one", i)
		}
		if n := q.Len(); n > innerQueueLimit+1 {
			t.Errorf("the inner queue contains %d requests", n)
		}
		if i%2 == 0 {
			q.AddAfter(r, time.Hour) // other delays do not matter
		}
		q.Done(r)
	}
	for name, n := range got {
		if n != 1 {
			t.Errorf("%q was returned %d times", name, n)
		}
	}
	if len(got) != all+2 || q.Len() > 0 || len(q.due) > 0 {
		t.Errorf("%d requests were returned, %d and %d are left", len(got), q.Len(), len(q.due))
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

// delayed is a queue that records the requests that are added to it after a delay.
type delayed struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	added []string
}

func (d *delayed) AddAfter(request reconcile.Request, after time.Duration) {
	d.added = append(d.added, request.Name+" "+after.String())
}

// The inner queue handles all other delays.
func TestQueuePassesOtherDelays(t *testing.T) {
	inner := &delayed{}
	q := NewQueue(inner, clocktesting.NewFakeClock(time.Unix(0, 0)))
	q.AddAfter(request("a"), time.Minute)
	q.AddAfter(request("b"), LowUrgencyDelay)
	if diff := cmp.Diff([]string{"a 1m0s"}, inner.added); diff != "" {
		t.Errorf("added (-want +got):\n%s", diff)
	}
}
