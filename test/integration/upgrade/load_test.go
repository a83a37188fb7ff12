package upgrade_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/test/integration/harness"
)

// workersPerNode is the number of claims that are processed at the same time on each node.
const workersPerNode = 3

// load creates and deletes claims and their Pods on nodes until it is stopped.
type load struct {
	namespace string
	quit      chan struct{}
	workers   sync.WaitGroup

	mu sync.Mutex
	// ended counts the claims that were bound, used and deleted, by node.
	ended map[string]int
	// names lists all claims that were created.
	names  []string
	failed []error
}

// start starts workers for the nodes. stop() ends them.
func start(ctx context.Context, namespace string, nodes ...string) *load {
	l := &load{namespace: namespace, quit: make(chan struct{}), ended: map[string]int{}}
	for _, node := range nodes {
		for worker := range workersPerNode {
			l.workers.Go(func() { l.work(ctx, fmt.Sprintf("%s-%d", node, worker), node) })
		}
	}
	return l
}

func (l *load) work(ctx context.Context, prefix, node string) {
	for i := 0; ; i++ {
		select {
		case <-l.quit:
			return
		default:
		}
		name := fmt.Sprintf("%s-%d", prefix, i)
		err := l.cycle(ctx, name, node)
		l.mu.Lock()
		l.names = append(l.names, name)
		if err == nil {
			l.ended[node]++
		} else {
			l.failed = append(l.failed, fmt.Errorf("claim %s: %w", name, err))
		}
		l.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// cycle creates a claim and a Pod, waits until the Pod runs, deletes both, and waits until they
// are gone. The host's API server may be unavailable at any time.
func (l *load) cycle(ctx context.Context, name, node string) error {
	if err := use(ctx, l.namespace, name, node); err != nil {
		return err
	}
	return remove(ctx, l.namespace, name)
}

// stop lets each worker complete its current cycle, and returns all errors.
func (l *load) stop() error {
	close(l.quit)
	l.workers.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.failed...)
}

// least returns the smallest number of ended claims on any of the nodes, and all errors so far.
func (l *load) least(nodes ...string) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.ended[nodes[0]]
	for _, node := range nodes {
		n = min(n, l.ended[node])
	}
	return n, errors.Join(l.failed...)
}

// use creates a claim and, on the given node, a Pod that uses it. It waits until the Pod is Ready.
func use(ctx context.Context, namespace, name, node string) error {
	pod := harness.Pod(namespace, name, name)
	harness.OnNodes(pod, node)
	for _, obj := range []client.Object{harness.Claim(namespace, name, class), pod} {
		if err := harness.Await(ctx, "the creation of "+name, func(ctx context.Context) error {
			err := x.Host.API.Create(ctx, obj)
			if apierrors.IsAlreadyExists(err) { // the response to an earlier request was lost
				return nil
			}
			obj.SetResourceVersion("")
			return err
		}); err != nil {
			return err
		}
	}
	return harness.Await(ctx, "Pod "+name, func(ctx context.Context) error {
		if err := x.Host.API.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pod.Status.Phase == corev1.PodRunning {
				return nil
			}
		}
		return fmt.Errorf("%s: %+v", pod.Status.Phase, pod.Status.Conditions)
	})
}

// remove deletes a claim and its Pod, and waits until they are gone.
func remove(ctx context.Context, namespace, name string) error {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	for _, obj := range []client.Object{&corev1.Pod{ObjectMeta: meta}, &corev1.PersistentVolumeClaim{ObjectMeta: meta}} {
		if err := harness.Await(ctx, "the deletion of "+name, func(ctx context.Context) error {
			err := x.Host.API.Delete(ctx, obj)
			if apierrors.IsNotFound(err) {
				return nil
			}
			return errors.Join(err, fmt.Errorf("%T exists", obj))
		}); err != nil {
			return err
		}
	}
	return nil
}
