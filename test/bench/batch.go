package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/xylem-io/xylem/test/integration/harness"
)

const (
	// creators is the number of workers that create objects at maximum speed.
	creators = 16
	// late is the maximum number of creations in flight at a steady rate.
	late = 256
)

var (
	claimSize = resource.MustParse("1Gi")
	grownSize = resource.MustParse("2Gi")
)

// batch is a number of claims, each with a Pod.
type batch struct {
	namespace, class string
	claims           int
	// rate is the number of claims per second; 0 means that all are created as fast as possible.
	rate float64
	// nodes are the nodes that the Pods select with the hostname label; empty means any node.
	nodes []string
}

func claimName(i int) string { return fmt.Sprintf("claim-%05d", i) }
func podName(i int) string   { return fmt.Sprintf("pod-%05d", i) }

func (b batch) claim(i int) *corev1.PersistentVolumeClaim {
	return harness.Claim(b.namespace, claimName(i), b.class)
}

func (b batch) pod(i int) *corev1.Pod {
	pod := harness.Pod(b.namespace, podName(i), claimName(i))
	harness.OnNodes(pod, b.nodes...)
	return pod
}

// apply creates all claims and Pods in a cluster, and returns the time at which each claim was
// requested.
func (b batch) apply(ctx context.Context, client kubernetes.Interface) (asked map[string]time.Time, err error) {
	asked = make(map[string]time.Time, b.claims)
	var mu sync.Mutex
	err = b.pace(ctx, func(ctx context.Context, i int) error {
		mu.Lock()
		asked[claimName(i)] = time.Now()
		mu.Unlock()
		if _, err := client.CoreV1().PersistentVolumeClaims(b.namespace).Create(ctx, b.claim(i), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create claim %d: %w", i, err)
		}
		if _, err := client.CoreV1().Pods(b.namespace).Create(ctx, b.pod(i), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create Pod %d: %w", i, err)
		}
		return nil
	})
	return asked, err
}

// atOnce calls do n times as fast as possible, with a fixed number of workers.
func atOnce(ctx context.Context, n int, do func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// pace calls do for each claim of the batch, at the batch's rate or for all at once.
func (b batch) pace(ctx context.Context, do func(context.Context, int) error) error {
	if b.rate == 0 {
		return atOnce(ctx, b.claims, do)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(late)
	begin := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := range b.claims {
		timer.Reset(time.Until(begin.Add(time.Duration(float64(i) / b.rate * float64(time.Second)))))
		select {
		case <-ctx.Done():
			return group.Wait()
		case <-timer.C:
		}
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// remove deletes the batch's Pods and claims in a cluster one by one, because deleting a
// collection of thousands exceeds the API server's request timeout.
func (b batch) remove(ctx context.Context, client kubernetes.Interface) error {
	core := client.CoreV1()
	for _, kind := range []struct {
		name   func(int) string
		remove func(context.Context, string, metav1.DeleteOptions) error
	}{
		{podName, core.Pods(b.namespace).Delete},
		{claimName, core.PersistentVolumeClaims(b.namespace).Delete},
	} {
		if err := atOnce(ctx, b.claims, func(ctx context.Context, i int) error {
			if err := kind.remove(ctx, kind.name(i), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("delete %s/%s: %w", b.namespace, kind.name(i), err)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// ofPods converts times by Pod name to times by claim name.
func ofPods(times map[string]time.Time) map[string]time.Time {
	named := make(map[string]time.Time, len(times))
	for name, at := range times {
		named["claim-"+name[len("pod-"):]] = at
	}
	return named
}
