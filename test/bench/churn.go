package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/test/integration/harness"
)

const (
	partChurn = "churn"
	partRest  = "idle after churn"
	// samplesOfChurn is the number of memory samples during churn.
	samplesOfChurn = 40
)

// Values of churn and scale.
const (
	heapKiB      = "heap KiB"
	heapGrowth   = "heap, last third over middle third"
	restWrites   = "writes when idle"
	restProbes   = "probes per member in 10 s"
	restCPU      = "CPU when idle, % of a core"
	restRequests = "other requests when idle"
	restWatches  = "watches started when idle"
)

// churn creates, expands and deletes claims at a steady rate and samples memory. Then it measures
// the idle manager.
func (b *bench) churn(ctx context.Context) error {
	r, err := b.clusters(ctx, 2)
	if err != nil {
		return err
	}
	p := part{scenario: churnName, repeat: 1, claims: int(b.settings.churn * b.churnFor.Seconds()), rate: b.settings.churn}
	c := batch{namespace: sharedSpace, class: classMirror, claims: p.claims, rate: p.rate}
	run := p.run(r, partChurn)
	books, err := r.open(ctx)
	if err != nil {
		return err
	}
	asked := map[string]time.Time{}
	begin := time.Now()
	group, groupCtx := errgroup.WithContext(ctx)
	stop := make(chan struct{})
	group.Go(func() error { return r.sample(groupCtx, run, begin, stop) })
	group.Go(func() error {
		defer close(stop)
		var err error
		asked, err = c.lives(groupCtx, r)
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	if err := r.await(ctx, "gone", c.claims, func() int { return r.gone(sharedSpace) }); err != nil {
		return err
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	if err := books.close(ctx, run); err != nil {
		return err
	}
	series := run.Series[heapKiB]
	run.Values[heapGrowth] = mean(series[len(series)*2/3:]) / mean(series[len(series)/3:len(series)*2/3])
	run.finish(r, asked, r.host.times(bound, c.namespace))
	r.forget(c.namespace)
	if err := r.counted(ctx, r.members); err != nil { // only the claims that keep the namespace remain
		return err
	}
	return r.atRest(ctx, part{scenario: churnName, repeat: 1}, partRest)
}

func mean(points [][2]float64) float64 {
	sum := 0.0
	for _, p := range points {
		sum += p[1]
	}
	return sum / float64(max(1, len(points)))
}

// sample records the heap size at intervals until stop is closed.
func (r *rig) sample(ctx context.Context, run *Run, begin time.Time, stop <-chan struct{}) error {
	ticker := time.NewTicker(max(time.Second, r.b.churnFor/samplesOfChurn))
	defer ticker.Stop()
	for told := 0; ; told++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-stop:
			return nil
		case <-ticker.C:
		}
		bytes, err := r.heap(ctx)
		if err != nil {
			return err
		}
		at := time.Since(begin).Seconds()
		run.Series[heapKiB] = append(run.Series[heapKiB], [2]float64{at, bytes / 1024})
		if told%4 == 0 {
			r.b.say("      after %.0f s: %.1f MiB of live heap", at, bytes/(1<<20))
		}
	}
}

// lives creates the claims and Pods at the batch's rate. It expands each claim once its Pod runs,
// and deletes it once it has been expanded.
func (b batch) lives(ctx context.Context, r *rig) (map[string]time.Time, error) {
	group, ctx := errgroup.WithContext(ctx)
	var asked map[string]time.Time
	group.Go(func() (err error) {
		asked, err = b.apply(ctx, r.host.client)
		return err
	})
	group.Go(func() error {
		grow := fmt.Appendf(nil, `{"spec":{"resources":{"requests":{"storage":%q}}}}`, grownSize.String())
		return r.each(ctx, b, func() map[string]time.Time { return ofPods(r.host.times(running, b.namespace)) }, func(ctx context.Context, i int) error {
			_, err := r.host.client.CoreV1().PersistentVolumeClaims(b.namespace).Patch(ctx, claimName(i), types.MergePatchType, grow, metav1.PatchOptions{})
			return err
		})
	})
	group.Go(func() error {
		return r.each(ctx, b, func() map[string]time.Time { return r.host.times(grown, b.namespace) }, func(ctx context.Context, i int) error {
			if err := r.host.client.CoreV1().Pods(b.namespace).Delete(ctx, podName(i), metav1.DeleteOptions{}); err != nil {
				return err
			}
			return r.host.client.CoreV1().PersistentVolumeClaims(b.namespace).Delete(ctx, claimName(i), metav1.DeleteOptions{})
		})
	})
	return asked, group.Wait()
}

// each calls do once for each claim of a batch, as soon as ready returns the claim.
func (r *rig) each(ctx context.Context, b batch, ready func() map[string]time.Time, do func(context.Context, int) error) error {
	done := make([]bool, b.claims)
	count := 0
	var failed error // the error of the last call; failed calls are retried
	err := r.await(ctx, "created and deleted", b.claims, func() int {
		there := ready()
		for i := range b.claims {
			if _, ok := there[claimName(i)]; !ok || done[i] {
				continue
			}
			if failed = do(ctx, i); failed == nil {
				done[i] = true
				count++
			}
		}
		return count
	})
	if err != nil {
		return errors.Join(err, failed)
	}
	return nil
}

// atRest measures the manager while no object changes.
func (r *rig) atRest(ctx context.Context, p part, name string) error {
	if err := r.settle(ctx); err != nil {
		return err
	}
	run := p.run(r, name)
	books, err := r.open(ctx)
	if err != nil {
		return err
	}
	r.b.say("      idle for %s", r.b.rest)
	timer := time.NewTimer(r.b.rest)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
	}
	if err := books.close(ctx, run); err != nil {
		return err
	}
	run.Values[restWrites], run.Values[restProbes], run.Values[restRequests], run.Values[restWatches] = 0, 0, 0, 0
	tens := r.b.rest.Seconds() / harness.ShippedProbe.Seconds()
	for _, c := range run.Requests {
		lease := c.Resource == "leases"
		switch {
		case lease && c.Side == "members":
			run.Values[restProbes] += float64(c.Number) / tens / float64(r.members)
		case lease:
		case c.Verb == "watch":
			run.Values[restWatches] += float64(c.Number)
		case c.write():
			run.Values[restWrites] += float64(c.Number)
		default:
			run.Values[restRequests] += float64(c.Number)
		}
	}
	run.Values[restCPU] = 100 * run.CPUSeconds / r.b.rest.Seconds()
	r.b.say("      writes %.0f, probes per member in 10 s %.2f, other requests %.0f, watches started %.0f, CPU %.1f %% of a core",
		run.Values[restWrites], run.Values[restProbes], run.Values[restRequests], run.Values[restWatches], run.Values[restCPU])
	return r.addWithHeap(ctx, run)
}
