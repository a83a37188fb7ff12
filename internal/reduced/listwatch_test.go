package reduced

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func pod(name, node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, ResourceVersion: "1"}, Spec: corev1.PodSpec{NodeName: node}}
}

func whole(obj any) (any, error) { return obj, nil }

func bookmark() watch.Event {
	return watch.Event{Type: watch.Bookmark, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}}
}

// While a list is streamed, its objects count in addition to those of the previous list.
func TestStreamedListsAreCounted(t *testing.T) {
	var total int64
	l := &ListWatch{Reduce: whole, AddSize: func(more int64) error { total += more; return nil }}
	send := func(kind watch.EventType, n int) {
		for i := range n {
			if _, passed := l.reduceEvent(watch.Event{Type: kind, Object: pod(fmt.Sprint(i), "")}); !passed {
				t.Fatal("an event was lost")
			}
		}
	}
	l.beginList()
	send(watch.Added, 10)
	l.reduceEvent(bookmark())
	ten := total
	send(watch.Modified, 10)
	if total != ten || ten == 0 {
		t.Errorf("10 Pods count as %d, and as %d after updates; want the same size, and not 0", ten, total)
	}
	l.beginList()
	send(watch.Added, 5)
	if total != ten*3/2 {
		t.Errorf("with half of the next list, the Pods count as %d, want %d", total, ten*3/2)
	}
	l.beginList() // The list was interrupted, and starts again.
	send(watch.Added, 5)
	l.reduceEvent(bookmark())
	if total != ten/2 {
		t.Errorf("5 Pods count as %d, want %d", total, ten/2)
	}
	send(watch.Deleted, 5)
	if total != 0 {
		t.Errorf("after all Pods were deleted, the cache counts %d bytes, want 0", total)
	}
}

// A member's fence and the host's revision depend on all objects that an API server sends, including deleted ones and
// those that the cache does not keep.
func TestObjectsAreSeen(t *testing.T) {
	for name, reduce := range map[string]toolscache.TransformFunc{
		"kept": whole, "not kept": func(any) (any, error) { return nil, nil }, //nolint:nilnil // the cache does not keep it
	} {
		t.Run(name, func(t *testing.T) {
			var seen []string
			of := func(version string) *corev1.Pod {
				return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", ResourceVersion: version}}
			}
			l := &ListWatch{
				ListerWatcherWithContext: &toolscache.ListWatch{ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
					return &corev1.PodList{Items: []corev1.Pod{*of("1")}}, nil
				}},
				Reduce: reduce,
				OnSeen: func(object runtime.Object) {
					if pod, ok := object.(*corev1.Pod); ok {
						seen = append(seen, pod.ResourceVersion)
					}
				},
			}
			if _, err := l.ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
				t.Fatal(err)
			}
			for version, kind := range map[string]watch.EventType{"2": watch.Added, "3": watch.Modified, "4": watch.Deleted} {
				l.reduceEvent(watch.Event{Type: kind, Object: of(version)})
			}
			if slices.Sort(seen); !slices.Equal(seen, []string{"1", "2", "3", "4"}) {
				t.Errorf("seen are %v, want all 4", seen)
			}
		})
	}
}

// An informer reports the deletion of an object that the cache no longer keeps, and nothing about objects that it
// never had. After ListAgain, it reports objects that the cache keeps now.
func TestInformersSeeWhatIsKept(t *testing.T) {
	streams := make(chan *watch.RaceFreeFakeWatcher, 100)
	there := []corev1.Pod{*pod("unbound", ""), *pod("elsewhere", "worker"), *pod("later", "virtual")}
	var virtual bool
	lists := 0
	l := &ListWatch{
		ListerWatcherWithContext: toolscache.ToListerWatcherWithContext(&toolscache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				lists++
				return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: slices.Clone(there)}, nil
			},
			WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
				if options.SendInitialEvents != nil {
					return nil, fmt.Errorf("this server does not stream lists")
				}
				stream := watch.NewRaceFreeFake()
				streams <- stream
				return stream, nil
			},
		}),
		Reduce: func(obj any) (any, error) {
			p, ok := obj.(*corev1.Pod)
			if !ok || p.Spec.NodeName != "" && (p.Spec.NodeName != "virtual" || !virtual) {
				return nil, nil //nolint:nilnil // the cache does not keep it
			}
			return p, nil
		},
	}
	informer := toolscache.NewSharedIndexInformer(l, &corev1.Pod{}, 0, toolscache.Indexers{})
	told := make(chan string, 100)
	name := func(obj any) string {
		if p, ok := obj.(*corev1.Pod); ok {
			return p.Name
		}
		return fmt.Sprintf("%T", obj)
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { told <- "added " + name(obj) }, DeleteFunc: func(obj any) { told <- "deleted " + name(obj) },
	}); err != nil {
		t.Fatal(err)
	}
	next := func(want string) {
		t.Helper()
		select {
		case got := <-told:
			if got != want {
				t.Fatalf("the informer reported %q, want %q", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("the informer did not report %q", want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go informer.RunWithContext(ctx)
	next("added unbound")
	stream := <-streams
	for _, event := range []watch.Event{
		{Type: watch.Modified, Object: pod("elsewhere", "worker")},
		{Type: watch.Deleted, Object: pod("elsewhere", "worker")},
		{Type: watch.Modified, Object: pod("unbound", "worker")},
		{Type: watch.Modified, Object: pod("unbound", "worker")},
		{Type: watch.Added, Object: pod("new", "")},
	} {
		stream.Action(event.Type, event.Object)
	}
	next("deleted unbound")
	next("added new")
	there = []corev1.Pod{*pod("new", ""), *pod("later", "virtual")}
	virtual = true
	l.ListAgain()
	next("added later")
	if lists != 2 {
		t.Errorf("the objects were listed %d times, want 2", lists)
	}
}

// other is a type that is not the API's.
type other struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}

func (o *other) DeepCopyObject() runtime.Object {
	c := *o
	o.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// A cache may keep objects of another type than the API's. Lists may be streamed then.
func TestInformersOfOtherTypes(t *testing.T) {
	stream := watch.NewRaceFreeFake()
	l := &ListWatch{
		ListerWatcherWithContext: toolscache.ToListerWatcherWithContext(&toolscache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				return nil, fmt.Errorf("this server streams lists")
			},
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return stream, nil },
		}),
		Reduce: func(obj any) (any, error) {
			p, ok := obj.(*corev1.Pod)
			if !ok {
				return nil, fmt.Errorf("%T is not a Pod", obj)
			}
			return &other{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, ResourceVersion: p.ResourceVersion}}, nil
		},
		NewObject: func() client.Object { return &other{} },
	}
	informer := toolscache.NewSharedIndexInformer(l, &other{}, 0, toolscache.Indexers{})
	deleted := make(chan any, 1)
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) { deleted <- obj }}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go informer.RunWithContext(ctx)
	stream.Add(pod("a", "worker"))
	end := bookmark()
	end.Object.(*corev1.Pod).ResourceVersion = "2" //nolint:forcetypeassert // see bookmark
	stream.Action(end.Type, end.Object)
	if !toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) || len(informer.GetIndexer().ListKeys()) != 1 {
		t.Fatalf("the cache has %v, want one object", informer.GetIndexer().ListKeys())
	}
	stream.Delete(pod("a", "worker"))
	select {
	case obj := <-deleted:
		if _, ok := obj.(*other); !ok {
			t.Errorf("the deleted object is a %T", obj)
		}
	case <-ctx.Done():
		t.Error("the informer did not report the deletion")
	}
}

// When a reflector ends, an event may still be on its way. No goroutine waits for a reader of that event, because
// it would keep the whole cache in memory.
func TestStoppedWatchesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stream := watch.NewRaceFreeFake()
		l := &ListWatch{Reduce: whole, ListerWatcherWithContext: toolscache.ToListerWatcherWithContext(&toolscache.ListWatch{
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return stream, nil },
		})}
		w, err := l.WatchWithContext(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		stream.Add(pod("a", ""))
		synctest.Wait()
		w.Stop() // synctest fails if a goroutine is left
	})
}
