package main

import (
	"context"
	"fmt"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	snapshotinformers "github.com/kubernetes-csi/external-snapshotter/client/v8/informers/externalversions"
	snapshotlisters "github.com/kubernetes-csi/external-snapshotter/client/v8/listers/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/xylem-io/xylem/test/controlplane"
)

// view is the state of one cluster, as its watches observe it.
type view struct {
	*controlplane.Cluster
	column    int
	claims    corelisters.PersistentVolumeClaimLister
	pods      corelisters.PodLister
	volumes   corelisters.PersistentVolumeLister
	snapshots snapshotlisters.VolumeSnapshotLister
}

// claim returns a claim, or nil.
func (v *view) claim(namespace, name string) *corev1.PersistentVolumeClaim {
	claim, err := v.claims.PersistentVolumeClaims(namespace).Get(name)
	return unlessMissing(claim, err)
}

// volume returns a volume, or nil.
func (v *view) volume(name string) *corev1.PersistentVolume {
	volume, err := v.volumes.Get(name)
	return unlessMissing(volume, err)
}

// snapshot returns a VolumeSnapshot, or nil.
func (v *view) snapshot(namespace, name string) *snapshotv1.VolumeSnapshot {
	snapshot, err := v.snapshots.VolumeSnapshots(namespace).Get(name)
	return unlessMissing(snapshot, err)
}

// unlessMissing converts a lister's result to an object or nil. A lister's only error is NotFound.
func unlessMissing[T any](object *T, err error) *T {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return object
}

// labelled returns the Pods in a namespace that have the label.
func (v *view) labelled(namespace, key, value string) []*corev1.Pod {
	pods, err := v.pods.Pods(namespace).List(labels.SelectorFromSet(labels.Set{key: value}))
	if err != nil {
		return nil // Listing from a cache by labels cannot fail.
	}
	return pods
}

// observe starts watching a cluster until the context ends. It records the changes in the timeline.
func observe(ctx context.Context, c *controlplane.Cluster, column int, t *timeline, names map[string]string) (*view, error) {
	factory := informers.NewSharedInformerFactory(c.Client(), 0)
	core := factory.Core().V1()
	v := &view{
		Cluster: c, column: column,
		claims: core.PersistentVolumeClaims().Lister(), pods: core.Pods().Lister(), volumes: core.PersistentVolumes().Lister(),
	}
	err := watch(core.PersistentVolumeClaims().Informer(), t,
		func(p *corev1.PersistentVolumeClaim) object { return object{column, kindClaim, p.Namespace, p.Name} },
		func(old, now *corev1.PersistentVolumeClaim) []change {
			return claimChanges(old, now, names, column == 0)
		},
		func(p *corev1.PersistentVolumeClaim) string { return "claim " + p.Name })
	if err == nil {
		err = watch(core.Pods().Informer(), t,
			func(p *corev1.Pod) object { return object{column, kindPod, p.Namespace, p.Name} },
			podChanges, func(p *corev1.Pod) string { return "Pod " + shortPod(p) })
	}
	if err == nil {
		err = watch(core.PersistentVolumes().Informer(), t, func(p *corev1.PersistentVolume) object {
			namespace := ""
			if p.Spec.ClaimRef != nil {
				namespace = p.Spec.ClaimRef.Namespace
			}
			return object{column, kindVolume, namespace, p.Name}
		}, volumeChanges, func(p *corev1.PersistentVolume) string { return "volume " + shortVolume(p.Name) })
	}
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", c.Name(), err)
	}
	factory.StartWithContext(ctx)
	for kind, ok := range factory.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return nil, fmt.Errorf("watch %s of %s: %w", kind, c.Name(), context.Cause(ctx))
		}
	}
	return v, v.observeSnapshots(ctx, t)
}

// observeSnapshots does what observe does, for the cluster's VolumeSnapshots.
func (v *view) observeSnapshots(ctx context.Context, t *timeline) error {
	client, err := v.SnapshotClient()
	if err != nil {
		return err
	}
	factory := snapshotinformers.NewSharedInformerFactory(client, 0)
	informer := factory.Snapshot().V1().VolumeSnapshots()
	v.snapshots = informer.Lister()
	err = watch(informer.Informer(), t,
		func(s *snapshotv1.VolumeSnapshot) object { return object{v.column, kindSnapshot, s.Namespace, s.Name} },
		snapshotChanges, func(s *snapshotv1.VolumeSnapshot) string { return "snapshot " + s.Name })
	if err != nil {
		return fmt.Errorf("watch %s: %w", v.Name(), err)
	}
	factory.Start(ctx.Done())
	for kind, ok := range factory.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return fmt.Errorf("watch %s of %s: %w", kind, v.Name(), context.Cause(ctx))
		}
	}
	return nil
}

// watch records an informer's events in the timeline.
func watch[T any](informer cache.SharedIndexInformer, t *timeline, of func(*T) object, changes func(old, now *T) []change, name func(*T) string) error {
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) {
			if now, ok := o.(*T); ok {
				t.record(time.Now(), of(now), changes(nil, now)...)
			}
		},
		UpdateFunc: func(o, n any) {
			old, ok := o.(*T)
			now, ok2 := n.(*T)
			if ok && ok2 {
				t.record(time.Now(), of(now), changes(old, now)...)
			}
		},
		DeleteFunc: func(o any) {
			if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = unknown.Obj
			}
			if old, ok := o.(*T); ok {
				t.record(time.Now(), of(old), change{event: gone, text: name(old) + " gone"})
			}
		},
	})
	return err
}

// follow records the calls to a member's CSI driver in the timeline, until the context ends.
func (v *view) follow(ctx context.Context, t *timeline) error {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for seen := 0; ; {
		book, err := v.Ledger()
		if err != nil {
			return err
		}
		for _, e := range book.Since(seen).Entries {
			t.record(e.Time, object{v.column, kindDisk, e.ClaimNamespace, e.ClaimName}, diskChange(e))
		}
		seen = len(book.Entries)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
