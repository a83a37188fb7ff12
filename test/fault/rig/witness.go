package rig

import (
	"context"
	"fmt"
	"sync"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/test/fault/oracle"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// rewatch is the interval before a witness restarts a watch.
const rewatch = 100 * time.Millisecond

// Witness watches all clusters without the proxies, and records every state of their objects,
// including intermediate states.
type Witness struct {
	mu   sync.Mutex
	seen []oracle.Sighting
}

// kinds returns the lists of the kinds to watch.
func kinds() []client.ObjectList {
	return []client.ObjectList{
		&corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}, &corev1.PodList{},
		&corev1.ConfigMapList{}, &corev1.SecretList{}, &corev1.ServiceList{}, &corev1.NamespaceList{},
		&snapshotv1.VolumeSnapshotList{}, &snapshotv1.VolumeSnapshotContentList{},
	}
}

// watchAll watches the clusters until ctx ends.
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

// follow watches from a resource version. When a watch ends, follow lists all objects and records
// missing ones as gone, because in a restored cluster the last version may not exist, or may
// represent another state.
func (w *Witness) follow(ctx context.Context, c *harness.Cluster, list client.ObjectList, from string) {
	known := map[client.ObjectKey]client.Object{}
	for ctx.Err() == nil {
		options := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: from}}
		if stream, err := c.API.Watch(ctx, list, options); err == nil {
			w.drain(c.Name(), stream, known)
		}
		select {
		case <-ctx.Done():
		case <-time.After(rewatch):
		}
		if again, err := w.relist(ctx, c, list, known); err == nil {
			from = again
		}
	}
}

// drain records a watch's events until the watch ends.
func (w *Witness) drain(cluster string, stream watch.Interface, known map[client.ObjectKey]client.Object) {
	defer stream.Stop()
	for event := range stream.ResultChan() {
		obj, ok := event.Object.(client.Object)
		if !ok || event.Type == watch.Error {
			return
		}
		if event.Type != watch.Bookmark {
			w.note(cluster, obj, event.Type == watch.Deleted, known)
		}
	}
}

// relist lists all objects and records the changes since the last known state.
func (w *Witness) relist(ctx context.Context, c *harness.Cluster, list client.ObjectList, known map[client.ObjectKey]client.Object) (string, error) {
	if err := c.API.List(ctx, list); err != nil {
		return "", err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return "", err
	}
	there := map[client.ObjectKey]bool{}
	for _, item := range items {
		obj, ok := item.(client.Object)
		if !ok {
			continue
		}
		key := client.ObjectKeyFromObject(obj)
		there[key] = true
		was := known[key]
		if was != nil && was.GetUID() != obj.GetUID() {
			w.note(c.Name(), was, true, known)
		}
		if was == nil || was.GetUID() != obj.GetUID() || was.GetResourceVersion() != obj.GetResourceVersion() {
			w.note(c.Name(), obj, false, known)
		}
	}
	for key, was := range known {
		if !there[key] {
			w.note(c.Name(), was, true, known)
		}
	}
	return list.GetResourceVersion(), nil
}

func (w *Witness) note(cluster string, obj client.Object, gone bool, known map[client.ObjectKey]client.Object) {
	obj.SetManagedFields(nil)
	if gone {
		delete(known, client.ObjectKeyFromObject(obj))
	} else {
		known[client.ObjectKeyFromObject(obj)] = obj
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, oracle.Sighting{At: time.Now(), Cluster: cluster, Gone: gone, Object: obj})
}

// Seen returns the states recorded since the last Forget, in order of arrival.
func (w *Witness) Seen() []oracle.Sighting {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]oracle.Sighting(nil), w.seen...)
}

// Forget drops the recorded states.
func (w *Witness) Forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = nil
}
