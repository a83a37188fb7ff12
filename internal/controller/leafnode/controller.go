package leafnode

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/member"
)

const (
	// Name of the controller.
	Name = "leaf_node"

	// pause is the least time between two publications. Each may be a write to
	// the host, which every scheduler and kube-proxy there is told of; what is
	// free in a busy member changes several times a second.
	pause = 5 * time.Second
)

// summer keeps the aggregate by events and publishes it.
type summer struct {
	clock   clock.Clock
	publish func(member.NodeFacts)

	mu      sync.Mutex
	sum     *aggregate
	changed chan struct{} // holds a token while there is something unpublished
}

// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch

// Setup adds the controller to a Link. Its handlers live and die with the
// Link's caches.
func Setup(link *member.Link) error {
	s := &summer{clock: clock.RealClock{}, publish: link.Publish, sum: newAggregate(), changed: make(chan struct{}, 1)}
	link.Run(func(ctx context.Context) error { return s.run(ctx, link.Cache, link.Workloads) })
	return nil
}

func (s *summer) run(ctx context.Context, nodes, workloads cache.Cache) error {
	synced := make([]toolscache.InformerSynced, 0, 2)
	for _, source := range []struct {
		cache   cache.Cache
		object  client.Object
		handler toolscache.ResourceEventHandler
	}{
		{nodes, &corev1.Node{}, on(s, s.sum.setNode, func(n *corev1.Node) { s.sum.dropNode(n.Name) })},
		{workloads, &corev1.Pod{}, on(s, s.sum.setPod, func(p *corev1.Pod) { s.sum.dropPod(p.UID) })},
	} {
		informer, err := source.cache.GetInformer(ctx, source.object)
		if err != nil {
			return fmt.Errorf("get the informer of %T: %w", source.object, err)
		}
		registration, err := informer.AddEventHandler(source.handler)
		if err != nil {
			return fmt.Errorf("add a handler of %T: %w", source.object, err)
		}
		synced = append(synced, registration.HasSynced)
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil // the link ends
	}
	s.wake() // a member without nodes is news as well
	return s.publishChanges(ctx)
}

// on is a handler that takes in an object that is there, and drops one that is
// gone.
func on[T client.Object](s *summer, set, drop func(T)) toolscache.ResourceEventHandler {
	do := func(obj any, change func(T)) {
		if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
			obj = tombstone.Obj
		}
		typed, ok := obj.(T)
		if !ok {
			return
		}
		s.mu.Lock()
		change(typed)
		s.mu.Unlock()
		s.wake()
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { do(obj, set) },
		UpdateFunc: func(before, obj any) {
			// After a gap, an object that was made anew under its name is an update.
			if was, ok := before.(T); ok {
				if is, ok := obj.(T); ok && was.GetUID() != is.GetUID() {
					do(before, drop)
				}
			}
			do(obj, set)
		},
		DeleteFunc: func(obj any) { do(obj, drop) },
	}
}

func (s *summer) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// publishChanges publishes the first sum at once, and what differs from the
// last one later on, with a pause in between.
func (s *summer) publishChanges(ctx context.Context) error {
	var last *member.NodeFacts
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.changed:
		}
		s.mu.Lock()
		facts := s.sum.facts()
		s.mu.Unlock()
		if last != nil && equality.Semantic.DeepEqual(*last, facts) {
			continue
		}
		s.publish(facts)
		last = &facts
		select {
		case <-ctx.Done():
			return nil
		case <-s.clock.After(pause):
		}
	}
}
