package index

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ReadOnly avoids copies of objects that are only read: their maps, lists and pointers belong to
// the cache. Tests run with client-go's cache mutation detector (KUBE_CACHE_MUTATION_DETECTOR),
// which terminates a process that changes a cached object.
const ReadOnly = client.UnsafeDisableDeepCopy

type indexField struct {
	object  client.Object
	name    string
	extract client.IndexerFunc
}

func addIndexFields(ctx context.Context, indexer client.FieldIndexer, fields []indexField) error {
	for _, f := range fields {
		if err := indexer.IndexField(ctx, f.object, f.name, f.extract); err != nil {
			return fmt.Errorf("index %s: %w", f.name, err)
		}
	}
	return nil
}

// indexByKeys indexes a kind by several keys.
func indexByKeys[T client.Object](keys func(T) []string) client.IndexerFunc {
	return func(obj client.Object) []string {
		typed, ok := obj.(T)
		if !ok {
			return nil
		}
		return keys(typed)
	}
}

// indexByKey indexes a kind by one key. It skips objects without a key.
func indexByKey[T client.Object](key func(T) string) client.IndexerFunc {
	return indexByKeys(func(obj T) []string { return nonEmptyKeys(key(obj)) })
}

func nonEmptyKeys(key string) []string {
	if key == "" {
		return nil
	}
	return []string{key}
}

func listClaims(ctx context.Context, r client.Reader, by indexSelector) ([]corev1.PersistentVolumeClaim, error) {
	var list corev1.PersistentVolumeClaimList
	if err := r.List(ctx, &list, by); err != nil {
		return nil, fmt.Errorf("list PersistentVolumeClaims: %w", err)
	}
	return list.Items, nil
}

func listPods(ctx context.Context, r client.Reader, by indexSelector) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := r.List(ctx, &list, by); err != nil {
		return nil, fmt.Errorf("list Pods: %w", err)
	}
	return list.Items, nil
}

func listVolumes(ctx context.Context, r client.Reader, by indexSelector) ([]corev1.PersistentVolume, error) {
	var list corev1.PersistentVolumeList
	if err := r.List(ctx, &list, by); err != nil {
		return nil, fmt.Errorf("list PersistentVolumes: %w", err)
	}
	return list.Items, nil
}

const slicesByService = "xylem.slices-by-service"

// SetupSliceIndex adds the index of EndpointSlices by Service to a cluster's cache. It is separate, because most caches do
// not contain EndpointSlices.
func SetupSliceIndex(ctx context.Context, indexer client.FieldIndexer) error {
	return addIndexFields(ctx, indexer, []indexField{{&discoveryv1.EndpointSlice{}, slicesByService, indexByKey(func(slice *discoveryv1.EndpointSlice) string {
		return slice.Labels[discoveryv1.LabelServiceName]
	})}})
}

// SlicesOfService returns the EndpointSlices of a Service.
func SlicesOfService(ctx context.Context, r client.Reader, service types.NamespacedName) ([]discoveryv1.EndpointSlice, error) {
	var list discoveryv1.EndpointSliceList
	if err := r.List(ctx, &list, indexSelector{slicesByService, service.Name, service.Namespace}); err != nil {
		return nil, fmt.Errorf("list the EndpointSlices of Service %s: %w", service, err)
	}
	return list.Items, nil
}
