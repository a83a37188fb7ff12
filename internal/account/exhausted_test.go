package account

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestLimit(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	after := func(d time.Duration) time.Time { return start.Add(d) }
	type note struct {
		class, size string
		until       time.Duration
	}
	type limit struct {
		Bytes int64
		Until time.Time
		Is    bool
	}
	for name, test := range map[string]struct {
		notes  []note
		forget string
		met    string
		at     time.Duration
		want   limit
	}{
		"nothing failed":       {},
		"another class failed": {notes: []note{{"slow", "1Gi", time.Minute}}},
		"the limit is one byte less than the failed size":           {notes: []note{{"fast", "1Gi", time.Minute}}, want: limit{1<<30 - 1, after(time.Minute), true}},
		"the failed size is less than a byte":                       {notes: []note{{"fast", "500m", time.Minute}}, want: limit{0, after(time.Minute), true}},
		"the record has expired":                                    {notes: []note{{"fast", "1Gi", time.Minute}}, at: time.Minute},
		"the smallest failed size determines the limit":             {notes: []note{{"fast", "2Gi", time.Hour}, {"fast", "1Gi", time.Minute}}, want: limit{1<<30 - 1, after(time.Minute), true}},
		"the larger size expires later":                             {notes: []note{{"fast", "2Gi", time.Hour}, {"fast", "1Gi", time.Minute}}, at: time.Minute, want: limit{2<<30 - 1, after(time.Hour), true}},
		"failed again: the later expiry wins":                       {notes: []note{{"fast", "1Gi", time.Minute}, {"fast", "1Gi", time.Hour}}, want: limit{1<<30 - 1, after(time.Hour), true}},
		"a failure that expires earlier does not shorten the limit": {notes: []note{{"fast", "1Gi", time.Hour}, {"fast", "2Gi", time.Minute}}, at: 2 * time.Minute, want: limit{1<<30 - 1, after(time.Hour), true}},
		"the driver reported its capacity again":                    {notes: []note{{"fast", "1Gi", time.Minute}}, forget: "fast"},
		"the driver reported another class's capacity again":        {notes: []note{{"fast", "1Gi", time.Minute}}, forget: "slow", want: limit{1<<30 - 1, after(time.Minute), true}},
		"a volume of that size was provisioned":                     {notes: []note{{"fast", "1Gi", time.Minute}}, met: "1Gi"},
		"a smaller volume was provisioned":                          {notes: []note{{"fast", "1Gi", time.Minute}}, met: "1023Mi", want: limit{1<<30 - 1, after(time.Minute), true}},
		"a volume between two failed sizes was provisioned":         {notes: []note{{"fast", "2Gi", time.Minute}, {"fast", "1Gi", time.Hour}, {"fast", "3Gi", 2 * time.Hour}}, met: "2Gi", want: limit{3<<30 - 1, after(2 * time.Hour), true}},
		"the failed size is not a whole number of bytes":            {notes: []note{{"fast", "1.5", time.Minute}}, want: limit{1, after(time.Minute), true}},
	} {
		t.Run(name, func(t *testing.T) {
			var book RejectedSizes
			for _, n := range test.notes {
				book.RecordRejectedSize(n.class, resource.MustParse(n.size), after(n.until))
			}
			book.ForgetClass(test.forget)
			if test.met != "" {
				book.RecordCreatedSize("fast", resource.MustParse(test.met))
			}
			size, until, is := book.MaxRequestSize("fast", after(test.at))
			if diff := cmp.Diff(test.want, limit{size.Value(), until, is}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Only changes enqueue the controller that publishes capacity.
func TestEnqueues(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	var book RejectedSizes
	named := func(_ context.Context, name string) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
	}
	if err := book.LimitChangeSource(named).Start(ctx, queue); err != nil {
		t.Fatal(err)
	}
	until := time.Unix(1_800_000_000, 0)
	woken := func() []string {
		var names []string
		for queue.Len() > 0 {
			request, _ := queue.Get()
			names = append(names, request.Name)
			queue.Done(request)
		}
		return names
	}
	for _, step := range []struct {
		name string
		do   func()
		want []string
	}{
		{"a size failed", func() { book.RecordRejectedSize("fast", resource.MustParse("1Gi"), until) }, []string{"fast"}},
		{"the same size failed again", func() { book.RecordRejectedSize("fast", resource.MustParse("1Gi"), until) }, nil},
		{"a larger size failed, which the first failure implies", func() { book.RecordRejectedSize("fast", resource.MustParse("2Gi"), until) }, nil},
		{"a smaller size failed", func() { book.RecordRejectedSize("fast", resource.MustParse("1Mi"), until) }, []string{"fast"}},
		{"the class's failures are forgotten", func() { book.ForgetClass("fast") }, []string{"fast"}},
		{"a size failed after that", func() { book.RecordRejectedSize("fast", resource.MustParse("1Gi"), until) }, []string{"fast"}},
		{"a smaller volume was provisioned", func() { book.RecordCreatedSize("fast", resource.MustParse("1Mi")) }, nil},
		{"a volume of the recorded size was provisioned", func() { book.RecordCreatedSize("fast", resource.MustParse("1Gi")) }, []string{"fast"}},
		{"a class without failures is forgotten", func() { book.ForgetClass("fast") }, nil},
	} {
		step.do()
		if diff := cmp.Diff(step.want, woken()); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
	}
}
