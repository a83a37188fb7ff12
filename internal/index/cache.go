package index

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"reflect"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/reduced"
)

// Cache looks up Pods, claims, volumes and events in its informers' indexes. For each lookup,
// controller-runtime's List creates a selector and an unused object of the kind. For each key of an index,
// client-go keeps a set of objects, which takes several hundred bytes even if it has one element. So
// Cache spreads the keys of some indexes over a limited number of sets.
type Cache struct {
	cache.Cache
	indexes map[indexID]fieldIndex

	mu              sync.Mutex
	sharedInformers map[toolscache.SharedIndexInformer]*sharedInformer
}

type indexID struct {
	kind reflect.Type
	name string
}

type fieldIndex struct {
	extract  client.IndexerFunc
	setCount uint64 // 0 if each key has its own set
	object   client.Object
	informer toolscache.SharedIndexInformer
}

// The number of sets of an index in the host and in a member.
const hostSetCount, memberSetCount = 1 << 13, 1 << 9

// setCounts contains the indexes in which few objects have the same key and namespace. A lookup must name the
// namespace.
var setCounts = map[string]uint64{
	podsByClaim: hostSetCount, volumesByLeaf: hostSetCount, volumesByClaim: hostSetCount, importsByLeaf: hostSetCount, promisesByClaim: hostSetCount,
	volumesByClaimUID: memberSetCount, volumesByRootUID: memberSetCount,
}

// NewCache wraps a cache. Add indexes only before it starts.
func NewCache(c cache.Cache) *Cache {
	return &Cache{Cache: c, indexes: map[indexID]fieldIndex{}, sharedInformers: map[toolscache.SharedIndexInformer]*sharedInformer{}}
}

// IndexField implements client.FieldIndexer.
func (c *Cache) IndexField(ctx context.Context, obj client.Object, name string, extract client.IndexerFunc) error {
	switch obj.(type) {
	case *corev1.Pod, *corev1.PersistentVolumeClaim, *corev1.PersistentVolume, *corev1.Event:
	default:
		return c.Cache.IndexField(ctx, obj, name, extract) //nolint:wrapcheck // as without Cache
	}
	informer, err := reduced.GetSharedInformer(ctx, c.Cache, obj, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	l := fieldIndex{extract, setCounts[name], obj, informer}
	c.indexes[indexID{reflect.TypeOf(obj), name}] = l
	return informer.AddIndexers(toolscache.Indexers{name: l.indexValues}) //nolint:wrapcheck // as without Cache
}

// List implements client.Reader.
func (c *Cache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if len(opts) == 1 {
		if by, ok := opts[0].(indexSelector); ok {
			switch list := list.(type) {
			case *corev1.PodList:
				return listByIndex(ctx, c, by, &list.Items)
			case *corev1.PersistentVolumeClaimList:
				return listByIndex(ctx, c, by, &list.Items)
			case *corev1.PersistentVolumeList:
				return listByIndex(ctx, c, by, &list.Items)
			case *corev1.EventList:
				return listByIndex(ctx, c, by, &list.Items)
			}
		}
	}
	return c.Cache.List(ctx, list, opts...) //nolint:wrapcheck // as without Cache
}

func listByIndex[T any, P interface {
	*T
	client.Object
}](ctx context.Context, c *Cache, by indexSelector, into *[]T) error {
	l, ok := c.indexes[indexID{reflect.TypeFor[P](), by.name}]
	if !ok {
		return fmt.Errorf("%T has no index %s", into, by.name)
	}
	if !l.informer.HasSynced() {
		// Like controller-runtime's List, wait if the cache has started.
		if _, err := c.GetInformer(ctx, l.object); err != nil {
			return fmt.Errorf("wait for the informer: %w", err)
		}
		if !l.informer.HasSynced() {
			return &cache.ErrCacheNotStarted{}
		}
	}
	items, err := l.informer.GetIndexer().ByIndex(by.name, l.indexValue(by.namespace, by.key))
	if err != nil {
		return fmt.Errorf("look up %s: %w", by.key, err)
	}
	var found []T
	if l.setCount == 0 {
		found = make([]T, 0, len(items))
	}
	for _, item := range items {
		obj, ok := item.(P)
		if !ok {
			return fmt.Errorf("the cache contains %T", item)
		}
		if l.setCount == 0 || obj.GetNamespace() == by.namespace && slices.Contains(l.extract(obj), by.key) {
			found = append(found, *obj)
		}
	}
	*into = found
	return nil
}

// indexSelector selects the objects with a key in an index, in one namespace or in all. For readers other than Cache,
// it is a field selector.
type indexSelector struct{ name, key, namespace string }

// ApplyToList implements client.ListOption.
func (w indexSelector) ApplyToList(o *client.ListOptions) {
	client.MatchingFields{w.name: w.key}.ApplyToList(o)
	client.InNamespace(w.namespace).ApplyToList(o)
	ReadOnly.ApplyToList(o)
}

var errNotAPIObject = errors.New("not an API object")

// indexValues returns an object's values in the informer's index.
func (l fieldIndex) indexValues(item any) ([]string, error) {
	obj, ok := item.(client.Object)
	if !ok {
		return nil, errNotAPIObject
	}
	keys, namespace := l.extract(obj), obj.GetNamespace()
	values := make([]string, 0, 2*len(keys))
	for _, key := range keys {
		values = append(values, l.indexValue(namespace, key))
		if namespace != "" && l.setCount == 0 {
			values = append(values, l.indexValue("", key)) // for indexes in all namespaces
		}
	}
	return values, nil
}

// indexValue returns the value of a key in the informer's index.
func (l fieldIndex) indexValue(namespace, key string) string {
	if l.setCount == 0 {
		return namespace + "/" + key
	}
	set := (maphash.String(hashSeed, namespace) + 31*maphash.String(hashSeed, key)) % l.setCount
	return setNames[2*set : 2*set+2]
}

var hashSeed = maphash.MakeSeed()

// setNames contains the names of all sets, of two bytes each.
var setNames = func() string {
	names := make([]byte, 0, 2*hostSetCount)
	for i := range hostSetCount {
		names = append(names, byte(i>>8), byte(i))
	}
	return string(names)
}()
