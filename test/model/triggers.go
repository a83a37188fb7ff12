package model

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/xylem-io/xylem/internal/controller/hostvolume"
	"github.com/xylem-io/xylem/internal/controller/leafpv"
	"github.com/xylem-io/xylem/internal/controller/rootpv"
	"github.com/xylem-io/xylem/internal/controller/rootpvc"
	"github.com/xylem-io/xylem/internal/route"
)

// wakes computes the requests that the events of a move enqueue. It feeds informers on which the
// controllers' own sources run, with their filters, the router of the host's events, and the index
// lookups. The caches show the state after the move.
type wakes struct {
	model     *Model
	now       state // the state that the caches show
	informers map[informed]*informer
	woken     map[request]bool
}

// informed identifies an informer by its cluster and kind.
type informed struct {
	side side
	kind string
}

// newWakes starts the sources of all controllers.
func (m *Model) newWakes(ctx context.Context) (*wakes, error) {
	k := &wakes{model: m, informers: map[informed]*informer{}, woken: map[request]bool{}}
	cached := func(s side) reader {
		return reader{contents: contents{m, s, func() state { return k.now }}, watched: k}
	}
	link := m.newLink(world{}, &run{clock: &stopped{}}, cached, cached)
	link.Router = route.New(cached(hostSide))
	if err := link.Router.SetupHandlers(ctx); err != nil {
		return nil, err
	}
	host := hostvolume.Reconciler{Client: writer{reader: cached(hostSide)}}
	if err := k.start(ctx, hostvolume.Name, host.EventSources(cached(hostSide))); err != nil {
		return nil, err
	}
	for n, name := range []string{rootpvc.Name, rootpv.Name, leafpv.Name} {
		if err := addTo(link, name, cached, cached, nil); err != nil {
			return nil, err
		}
		if err := k.start(ctx, name, link.ControllerSources()[n]); err != nil {
			return nil, err
		}
	}
	return k, nil
}

func (k *wakes) start(ctx context.Context, controller string, sources []source.Source) error {
	for _, src := range sources {
		if err := src.Start(ctx, queue{wakes: k, controller: controller}); err != nil {
			return fmt.Errorf("start a source of %s: %w", controller, err)
		}
		if syncing, ok := src.(source.SyncingSource); ok {
			if err := syncing.WaitForSync(ctx); err != nil {
				return fmt.Errorf("start a source of %s: %w", controller, err)
			}
		}
	}
	return nil
}

// between returns all requests that the events of a change from one cached state to another
// enqueue.
func (k *wakes) between(from, to state) map[request]bool {
	k.now, k.woken = to, map[request]bool{}
	for _, s := range []side{hostSide, memberSide} {
		for _, like := range []client.Object{&corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}, &corev1.Pod{}, &storagev1.StorageClass{}} {
			if i := k.informers[informed{s, fmt.Sprintf("%T", like)}]; i == nil {
				continue
			}
			k.tell(s, like, from, to)
		}
	}
	return k.woken
}

// tell calls the event handlers of a kind for each changed object.
func (k *wakes) tell(s side, like client.Object, from, to state) {
	i := k.informers[informed{s, fmt.Sprintf("%T", like)}]
	was := byName(contents{k.model, s, func() state { return from }}.objects(like))
	is := byName(contents{k.model, s, func() state { return to }}.objects(like))
	for name, before := range was {
		after := is[name]
		switch {
		case after == nil || after.GetUID() != before.GetUID():
			i.each(func(h toolscache.ResourceEventHandler) { h.OnDelete(before) })
		case after.GetResourceVersion() != before.GetResourceVersion():
			i.each(func(h toolscache.ResourceEventHandler) { h.OnUpdate(before, after) })
		}
	}
	for name, after := range is {
		if before := was[name]; before == nil || after.GetUID() != before.GetUID() {
			i.each(func(h toolscache.ResourceEventHandler) { h.OnAdd(after, false) })
		}
	}
}

func byName(objects []client.Object) map[client.ObjectKey]client.Object {
	found := map[client.ObjectKey]client.Object{}
	for _, obj := range objects {
		found[client.ObjectKeyFromObject(obj)] = obj
	}
	return found
}

// GetInformer returns the informer for the object's kind.
func (r reader) GetInformer(_ context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	of := informed{r.side, fmt.Sprintf("%T", obj)}
	if r.watched.informers[of] == nil {
		r.watched.informers[of] = &informer{objects: func() []client.Object { return r.objects(obj) }, indexers: toolscache.Indexers{}}
	}
	return r.watched.informers[of], nil
}

// WaitForCacheSync returns true, because the caches are always current.
func (reader) WaitForCacheSync(context.Context) bool { return true }

// informer implements those methods of an informer that sources and the router use.
type informer struct {
	toolscache.SharedIndexInformer
	objects  func() []client.Object
	handlers []toolscache.ResourceEventHandler
	indexers toolscache.Indexers
}

func (i *informer) each(do func(toolscache.ResourceEventHandler)) {
	for _, h := range i.handlers {
		do(h)
	}
}

func (i *informer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	i.handlers = append(i.handlers, h)
	return registered{}, nil
}

func (i *informer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, _ toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}

func (i *informer) AddIndexers(indexers toolscache.Indexers) error {
	for name, extract := range indexers {
		i.indexers[name] = extract
	}
	return nil
}

func (i *informer) GetIndexer() toolscache.Indexer { return indexes{informer: i} }

type registered struct {
	toolscache.ResourceEventHandlerRegistration
}

func (registered) HasSynced() bool { return true }

// indexes provides the indexes of an informer.
type indexes struct {
	toolscache.Indexer
	informer *informer
}

func (i indexes) ByIndex(name, value string) ([]any, error) {
	var found []any
	for _, obj := range i.informer.objects() {
		values, err := i.informer.indexers[name](obj)
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			if v == value {
				found = append(found, obj)
			}
		}
	}
	return found, nil
}

// queue is a controller's queue. It only records the enqueued requests.
type queue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	wakes      *wakes
	controller string
}

func (q queue) Add(r reconcile.Request) { q.wakes.woken[request{q.controller, r.Name}] = true }

func (q queue) AddAfter(r reconcile.Request, _ time.Duration) { q.Add(r) }

func (q queue) AddRateLimited(r reconcile.Request) { q.Add(r) }
