package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/xylem-io/xylem/test/controlplane"
)

// stage is a step in the lifecycle of a claim, its Pod or its volume.
type stage string

const (
	bound      stage = "bound"
	running    stage = "running"
	claimGone  stage = "claim gone"
	podGone    stage = "Pod gone"
	volumeGone stage = "volume gone"
	grown      stage = "grown"
)

// place is a stage in one namespace.
type place struct {
	stage     stage
	namespace string
}

// view watches one cluster and records when each object was first observed in each stage.
type view struct {
	name   string
	client kubernetes.Interface
	end    context.CancelFunc

	mu   sync.Mutex
	seen map[place]map[string]time.Time
}

// watch starts watching a cluster.
func watch(ctx context.Context, c *controlplane.Cluster) (*view, error) {
	config, err := c.RESTConfig(controlplane.Direct)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create a client of %s: %w", c.Name(), err)
	}
	ctx, end := context.WithCancel(ctx)
	v := &view{name: c.Name(), client: client, end: end, seen: map[place]map[string]time.Time{}}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(func(obj any) (any, error) {
		if o, ok := obj.(metav1.Object); ok {
			o.SetManagedFields(nil)
		}
		return obj, nil
	}))
	for _, informer := range []cache.SharedIndexInformer{
		factory.Core().V1().PersistentVolumeClaims().Informer(), factory.Core().V1().Pods().Informer(), factory.Core().V1().PersistentVolumes().Informer(),
	} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: v.see, UpdateFunc: func(_, obj any) { v.see(obj) }, DeleteFunc: v.miss,
		}); err != nil {
			end()
			return nil, fmt.Errorf("watch %s: %w", c.Name(), err)
		}
	}
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			end()
			return nil, fmt.Errorf("watch %s of %s: not synced", kind, c.Name())
		}
	}
	return v, nil
}

func (v *view) see(obj any) {
	switch o := obj.(type) {
	case *corev1.PersistentVolumeClaim:
		if o.Status.Phase == corev1.ClaimBound {
			v.note(bound, o.Namespace, o.Name)
			if has := o.Status.Capacity[corev1.ResourceStorage]; has.Cmp(claimSize) > 0 {
				v.note(grown, o.Namespace, o.Name)
			}
		}
	case *corev1.Pod:
		if o.Status.Phase == corev1.PodRunning {
			v.note(running, o.Namespace, o.Name)
		}
	}
}

func (v *view) miss(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	switch o := obj.(type) {
	case *corev1.PersistentVolumeClaim:
		v.note(claimGone, o.Namespace, o.Name)
	case *corev1.Pod:
		v.note(podGone, o.Namespace, o.Name)
	case *corev1.PersistentVolume:
		if ref := o.Spec.ClaimRef; ref != nil {
			v.note(volumeGone, ref.Namespace, ref.Name)
		}
	}
}

// note records when an object reached a stage, unless an earlier time is known.
func (v *view) note(s stage, namespace, name string) {
	if strings.Contains(name, heldMark) {
		return
	}
	now := time.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	at := place{s, namespace}
	if v.seen[at] == nil {
		v.seen[at] = map[string]time.Time{}
	}
	if _, known := v.seen[at][name]; !known {
		v.seen[at][name] = now
	}
}

// times returns when each object reached a stage, by the object's name.
func (v *view) times(s stage, namespace string) map[string]time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	copied := make(map[string]time.Time, len(v.seen[place{s, namespace}]))
	for name, at := range v.seen[place{s, namespace}] {
		copied[name] = at
	}
	return copied
}

func (v *view) count(s stage, namespace string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.seen[place{s, namespace}])
}

// forget drops the times of a namespace. By then, it contains only the held objects.
func (v *view) forget(namespace string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for at := range v.seen {
		if at.namespace == namespace {
			delete(v.seen, at)
		}
	}
}

// views are the views of several clusters. Each object exists in only one of the clusters.
type views []*view

func (all views) count(s stage, namespace string) (n int) {
	for _, v := range all {
		n += v.count(s, namespace)
	}
	return n
}

func (all views) times(s stage, namespace string) map[string]time.Time {
	merged := map[string]time.Time{}
	for _, v := range all {
		for name, at := range v.times(s, namespace) {
			merged[name] = at
		}
	}
	return merged
}
