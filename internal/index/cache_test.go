package index

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// informers is a cache that has only informers.
type informers struct {
	cache.Cache
	of map[string]toolscache.SharedIndexInformer
}

func (i informers) GetInformer(_ context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return i.of[fmt.Sprintf("%T", obj)], nil
}

func (informers) IndexField(context.Context, client.Object, string, client.IndexerFunc) error {
	return nil
}

// listed serves a list.
type listed struct{ toolscache.ListWatch }

// IsWatchListSemanticsUnSupported makes a reflector list before it watches.
func (*listed) IsWatchListSemanticsUnSupported() bool { return true }

func informerOf(list runtime.Object, kind runtime.Object) toolscache.SharedIndexInformer {
	return toolscache.NewSharedIndexInformer(&listed{toolscache.ListWatch{
		ListWithContextFunc:  func(context.Context, metav1.ListOptions) (runtime.Object, error) { return list, nil },
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
	}}, kind, 0, toolscache.Indexers{})
}

// memberCache returns the cache of a member, and a function that starts it.
func memberCache(t *testing.T, volumes []corev1.PersistentVolume, claims []corev1.PersistentVolumeClaim) (*Cache, func()) {
	t.Helper()
	of := informers{of: map[string]toolscache.SharedIndexInformer{
		"*v1.PersistentVolume":      informerOf(&corev1.PersistentVolumeList{Items: volumes}, &corev1.PersistentVolume{}),
		"*v1.PersistentVolumeClaim": informerOf(&corev1.PersistentVolumeClaimList{Items: claims}, &corev1.PersistentVolumeClaim{}),
		"*v1.Pod":                   informerOf(&corev1.PodList{}, &corev1.Pod{}),
		"*v1.Event":                 informerOf(&corev1.EventList{}, &corev1.Event{}),
	}}
	c := NewCache(of)
	if err := SetupMemberIndexes(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return c, func() {
		for _, informer := range of.of {
			go informer.RunWithContext(t.Context())
			if !toolscache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
				t.Fatal("not synced")
			}
		}
	}
}

// names is a handler that records the names of volumes.
type names struct {
	mu    sync.Mutex
	added map[string]int
	gone  chan string
}

func (n *names) OnAdd(obj any, _ bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.added[obj.(*corev1.PersistentVolume).Name]++
}

func (*names) OnUpdate(_, _ any) {}

func (n *names) OnDelete(obj any) { n.gone <- obj.(*corev1.PersistentVolume).Name }

func (n *names) seen() map[string]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.added)
}

// Each handler receives all objects once, whether it was added before or after the start, and later events until it
// is removed.
func TestCacheHandlers(t *testing.T) {
	events := watch.NewFake()
	informer := toolscache.NewSharedIndexInformer(&listed{toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &corev1.PersistentVolumeList{Items: []corev1.PersistentVolume{volumeOf(0), volumeOf(1)}}, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return events, nil },
	}}, &corev1.PersistentVolume{}, 0, toolscache.Indexers{})
	c := NewCache(informers{of: map[string]toolscache.SharedIndexInformer{"*v1.PersistentVolume": informer}})
	found, err := c.GetInformer(t.Context(), &corev1.PersistentVolume{})
	if err != nil {
		t.Fatal(err)
	}
	add := func() (*names, toolscache.ResourceEventHandlerRegistration) {
		n := &names{added: map[string]int{}, gone: make(chan string, 1)}
		handle, err := found.AddEventHandlerWithOptions(n, toolscache.HandlerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return n, handle
	}
	before, handle := add()
	if handle.HasSynced() {
		t.Error("the handler has synced before the informer started")
	}
	go informer.RunWithContext(t.Context())
	if !toolscache.WaitForCacheSync(t.Context().Done(), handle.HasSynced) {
		t.Fatal("not synced")
	}
	removed, ends := add()
	after, _ := add()
	if err := found.RemoveEventHandler(ends); err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]*names{"before": before, "after": after, "removed": removed} {
		if diff := cmp.Diff(map[string]int{"pv-0": 1, "pv-1": 1}, n.seen()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	gone := volumeOf(0)
	events.Delete(&gone)
	for _, n := range []*names{before, after} {
		if name := <-n.gone; name != "pv-0" {
			t.Errorf("%s was deleted", name)
		}
	}
	if len(removed.gone) > 0 {
		t.Error("a removed handler received an event")
	}
	if again, err := c.GetInformer(t.Context(), &corev1.PersistentVolume{}); err != nil || again != found {
		t.Errorf("got another informer, %v", err)
	}
}

// volumeOf returns a PV that is stamped for a root, and belongs to a claim.
func volumeOf(i int) corev1.PersistentVolume {
	return corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pv-%d", i), Annotations: map[string]string{v1alpha1.AnnotationRootUID: fmt.Sprintf("root-%d", i)}},
		Spec:       corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{UID: types.UID(fmt.Sprintf("claim-%d", i))}},
	}
}

// With more volumes than sets, several volumes are in the same set.
func TestCacheDistinguishesKeysOfOneSet(t *testing.T) {
	volumes := make([]corev1.PersistentVolume, 0, 2*memberSetCount)
	for i := range 2 * memberSetCount {
		volumes = append(volumes, volumeOf(i))
	}
	c, start := memberCache(t, volumes, nil)
	start()
	for i := range volumes {
		for name, look := range map[string]func(context.Context, client.Reader, types.UID) ([]corev1.PersistentVolume, error){"root": LeafVolumesOfRoot, "claim": LeafVolumesOfClaim} {
			found, err := look(t.Context(), c, types.UID(fmt.Sprintf("%s-%d", name, i)))
			if err != nil || len(found) != 1 || found[0].Name != volumes[i].Name {
				t.Fatalf("%s %d: found %d volumes, %v", name, i, len(found), err)
			}
		}
	}
	if found, err := LeafVolumesOfRoot(t.Context(), c, "another"); err != nil || len(found) != 0 {
		t.Errorf("found %d volumes, %v", len(found), err)
	}
}

func TestCacheLooksUpInNamespaces(t *testing.T) {
	copyIn := func(namespace string) corev1.PersistentVolumeClaim {
		return corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data", Annotations: map[string]string{v1alpha1.AnnotationCopyOf: "pv"}}}
	}
	c, start := memberCache(t, nil, []corev1.PersistentVolumeClaim{copyIn("shop"), copyIn("other")})
	start()
	for namespace, want := range map[string]int{"": 2, "shop": 1, "third": 0} {
		if found, err := listClaims(t.Context(), c, indexSelector{copiesByVolume, "pv", namespace}); err != nil || len(found) != want {
			t.Errorf("in namespace %q: found %d claims, %v, want %d", namespace, len(found), err, want)
		}
	}
}

func TestCacheBeforeItStarts(t *testing.T) {
	c, _ := memberCache(t, []corev1.PersistentVolume{volumeOf(0)}, nil)
	var notStarted *cache.ErrCacheNotStarted
	if _, err := LeafVolumesOfRoot(t.Context(), c, "root-0"); !errors.As(err, &notStarted) {
		t.Errorf("got %v", err)
	}
	if _, err := listVolumes(t.Context(), c, indexSelector{"unknown", "key", ""}); err == nil {
		t.Error("a lookup in an unknown index succeeded")
	}
}

// After a restart, controllers look up each volume several times.
func TestCacheAllocations(t *testing.T) {
	c, start := memberCache(t, []corev1.PersistentVolume{volumeOf(0)}, nil)
	start()
	const most = 8
	if n := testing.AllocsPerRun(100, func() {
		if _, err := LeafVolumesOfRoot(t.Context(), c, "root-0"); err != nil {
			t.Fatal(err)
		}
	}); n > most {
		t.Errorf("a lookup makes %.0f allocations, want at most %d", n, most)
	}
}
