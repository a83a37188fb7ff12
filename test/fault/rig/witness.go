package rig

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/test/fault/oracle"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// rewatch is how long a witness waits before it watches again.
const rewatch = 100 * time.Millisecond

// Witness sees every state of the objects in all clusters, past the proxies: not
// only where they end, but what they went through.
type Witness struct {
	mu   sync.Mutex
	seen []oracle.Sighting
}

// kinds that it watches.
func kinds() []client.ObjectList {
	return []client.ObjectList{
		&corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}, &corev1.PodList{},
		&corev1.ConfigMapList{}, &corev1.SecretList{}, &corev1.NamespaceList{},
	}
}

// watchAll begins to watch the clusters, until ctx ends.
func watchAll(ctx context.Context, clusters []*harness.Cluster) (*Witness, error) {
	w := &Witness{}
	for _, c := range clusters {
		for _, list := range kinds() {
			if err := c.API.List(ctx, list); err != nil {
				return nil, fmt.Errorf("list %T in %s: %w", list, c.Name(), err)
			}
			go w.follow(ctx, c, list, list.GetResourceVersion())
		}
	}
	return w, nil
}

// follow watches from a resource version on, and again from where a watch ended.
func (w *Witness) follow(ctx context.Context, c *harness.Cluster, list client.ObjectList, from string) {
	for ctx.Err() == nil {
		options := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: from}}
		stream, err := c.API.Watch(ctx, list, options)
		if err == nil {
			from = w.drain(c.Name(), stream, from)
		}
		select {
		case <-ctx.Done():
		case <-time.After(rewatch):
		}
	}
}

func (w *Witness) drain(cluster string, stream watch.Interface, from string) string {
	defer stream.Stop()
	for event := range stream.ResultChan() {
		obj, ok := event.Object.(client.Object)
		if !ok || event.Type == watch.Error {
			return from
		}
		from = obj.GetResourceVersion()
		if event.Type == watch.Bookmark {
			continue
		}
		obj.SetManagedFields(nil)
		w.mu.Lock()
		w.seen = append(w.seen, oracle.Sighting{At: time.Now(), Cluster: cluster, Gone: event.Type == watch.Deleted, Object: obj})
		w.mu.Unlock()
	}
	return from
}

// Seen is what was seen since the last Forget, in the order of its arrival.
func (w *Witness) Seen() []oracle.Sighting {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]oracle.Sighting(nil), w.seen...)
}

// Forget drops what was seen so far.
func (w *Witness) Forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = nil
}
