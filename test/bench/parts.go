package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// Parts of scenarios.
const (
	partNative  = "native"
	partFloor   = "floor"
	partDriver  = "driver"
	partPlain   = "plain mirror"
	partMirror  = "mirror"
	partPromise = "promise"
	partDelete  = " delete" // appended to the name of the mode
)

// restarts is the name of the value that counts how often the manager exited and was restarted.
const restarts = "restarts of the manager"

// Names of the measured times. Each names its start and its end.
const (
	askedBound     = "claim created to Bound"
	askedLeafRuns  = "created to leaf Pod running"
	askedRuns      = "created to Pod running"
	leafBoundBound = "leaf Bound to Bound"
	leafRunsRuns   = "leaf Pod running to Pod running"
	askedGone      = "deleted to volume deleted"
)

// part is the configuration of one part of a scenario.
type part struct {
	scenario string
	repeat   int
	claims   int
	rate     float64
	nodes    []string // host nodes that the Pods select; nil means any
	// meanwhile, if not nil, starts and stops a disturbance during the measurement.
	meanwhile func(on bool) error
}

func (p part) run(r *rig, name string) *Run {
	run := &Run{Scenario: p.scenario, Part: name, Repeat: p.repeat, Claims: p.claims, Members: r.members, Load: loadAverage(), busy: newBusy(), Times: map[string]Distribution{}, Values: map[string]float64{}, Series: map[string][][2]float64{}}
	r.b.say("   %s %s, repeat %d: %d claims (load %s)", p.scenario, name, p.repeat, p.claims, run.Load)
	return run
}

// disturb starts or stops the disturbance.
func (p part) disturb(on bool) error {
	if p.meanwhile == nil {
		return nil
	}
	return p.meanwhile(on)
}

// finish records how long each claim took from its request to its binding in the same cluster,
// and adds the run to the report.
func (run *Run) finish(r *rig, asked, boundAt map[string]time.Time) {
	first, seconds := span(asked, boundAt)
	run.Seconds, run.Rate = seconds, float64(len(boundAt))/seconds
	run.Times[askedBound] = between(asked, boundAt)
	run.Series[string(bound)] = progress(first, boundAt)
	d := run.Times[askedBound]
	r.b.say("      Bound: %.1f/s, all after %.1f s; p50 %.0f ms, p90 %.0f ms, p99 %.0f ms", run.Rate, run.Seconds, d.P50, d.P90, d.P99)
	r.b.report.add(run)
}

// mirrored measures Xylem: how it creates the claims and Pods, and then how it deletes them.
func (r *rig) mirrored(ctx context.Context, p part, mode string) error {
	b := batch{namespace: sharedSpace, class: classMirror, claims: p.claims, rate: p.rate, nodes: p.nodes}
	if mode == partPromise {
		b.class = classPromise
		for i := range r.members {
			b.nodes = append(b.nodes, nodeName(i)) // otherwise, the scheduler may choose one of the host's own nodes
		}
	}
	run := p.run(r, mode)
	books, err := r.open(ctx)
	if err != nil {
		return err
	}
	if err := p.disturb(true); err != nil {
		return err
	}
	var asked map[string]time.Time
	err = r.profiled(ctx, fmt.Sprintf("%s-%s-%d", p.scenario, mode, p.repeat), func() error {
		return r.kept(ctx, run, func() error {
			if asked, err = b.apply(ctx, r.host.client); err != nil {
				return err
			}
			return r.await(ctx, "running", b.claims, func() int { return r.running(b.namespace) })
		})
	})
	if err := errors.Join(err, p.disturb(false)); err != nil {
		return err
	}
	run.Busy = run.busy.processors()
	if err := r.settle(ctx); err != nil {
		return err
	}
	if err := books.close(ctx, run); err != nil {
		return err
	}
	ranInHost, ranInMember := ofPods(r.host.times(running, b.namespace)), ofPods(r.leaves.times(running, b.namespace))
	run.Times[askedRuns], run.Times[askedLeafRuns] = between(asked, ranInHost), between(asked, ranInMember)
	run.Times[leafRunsRuns] = between(ranInMember, ranInHost)
	run.Times[leafBoundBound] = between(r.leaves.times(bound, b.namespace), r.host.times(bound, b.namespace))
	run.finish(r, asked, r.host.times(bound, b.namespace))
	return r.unmirrored(ctx, p, mode, b)
}

// unmirrored measures how Xylem deletes the claims and Pods.
func (r *rig) unmirrored(ctx context.Context, p part, mode string, b batch) error {
	run := p.run(r, mode+partDelete)
	books, err := r.open(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	err = r.profiled(ctx, fmt.Sprintf("%s-%s-delete-%d", p.scenario, mode, p.repeat), func() error {
		return r.kept(ctx, run, func() error {
			if err := b.remove(ctx, r.host.client); err != nil {
				return err
			}
			return r.await(ctx, "gone", b.claims, func() int { return r.gone(b.namespace) })
		})
	})
	if err != nil {
		return err
	}
	run.Busy = run.busy.processors()
	if err := r.settle(ctx); err != nil {
		return err
	}
	if err := books.close(ctx, run); err != nil {
		return err
	}
	run.finishDeletion(r, begin, r.host.times(volumeGone, b.namespace))
	r.forget(b.namespace)
	return nil
}

// finishDeletion records how long after the begin of a deletion each volume was gone, and adds the
// run to the report.
func (run *Run) finishDeletion(r *rig, begin time.Time, gone map[string]time.Time) {
	asked := map[string]time.Time{}
	for name := range gone {
		asked[name] = begin
	}
	_, run.Seconds = span(asked, gone)
	run.Rate = float64(len(gone)) / run.Seconds
	run.Times[askedGone] = between(asked, gone)
	r.b.say("      deleted: %.1f/s, all after %.1f s", run.Rate, run.Seconds)
	r.b.report.add(run)
}

// yardNative measures the native yardstick: the same claims and Pods in one cluster without Xylem.
func (r *rig) yardNative(ctx context.Context, p part) error {
	b := batch{class: classMember, claims: p.claims, rate: p.rate}
	var err error
	if b.namespace, err = r.space(ctx, p.scenario, r.native); err != nil {
		return err
	}
	run := p.run(r, partNative)
	asked, err := b.apply(ctx, r.native.client)
	if err != nil {
		return err
	}
	if err := r.await(ctx, "running", b.claims, func() int {
		return min(r.native.count(running, b.namespace), r.native.count(bound, b.namespace))
	}); err != nil {
		return err
	}
	run.Busy = run.busy.processors()
	run.Times[askedRuns] = between(asked, ofPods(r.native.times(running, b.namespace)))
	run.finish(r, asked, r.native.times(bound, b.namespace))
	if err := b.remove(ctx, r.native.client); err != nil {
		return err
	}
	if err := r.await(ctx, "cleaning up", b.claims, func() int { return r.native.count(volumeGone, b.namespace) }); err != nil {
		return err
	}
	r.forget(b.namespace)
	return nil
}

// yardFloor measures the floor yardstick: claims whose volumes already exist, so that the PV
// controller only has to bind them.
func (r *rig) yardFloor(ctx context.Context, p part) error {
	b := batch{class: "", claims: p.claims, rate: p.rate}
	var err error
	if b.namespace, err = r.space(ctx, p.scenario, r.native); err != nil {
		return err
	}
	if err := atOnce(ctx, b.claims, func(ctx context.Context, i int) error { return r.volume(ctx, r.native, b.claim(i), "floor") }); err != nil {
		return err
	}
	run := p.run(r, partFloor)
	asked := map[string]time.Time{}
	begin := time.Now()
	if err := b.pace(ctx, func(ctx context.Context, i int) error {
		_, err := r.native.client.CoreV1().PersistentVolumeClaims(b.namespace).Create(ctx, b.claim(i), metav1.CreateOptions{})
		return err
	}); err != nil {
		return fmt.Errorf("create claims for existing volumes: %w", err)
	}
	if err := r.await(ctx, "bound", b.claims, func() int { return r.native.count(bound, b.namespace) }); err != nil {
		return err
	}
	run.Busy = run.busy.processors()
	for i := range b.claims {
		asked[claimName(i)] = begin.Add(r.due(b, i))
	}
	run.finish(r, asked, r.native.times(bound, b.namespace))
	return r.clear(ctx, b, views{r.native})
}

// due returns how long after the start of the batch a claim is created.
func (r *rig) due(b batch, i int) time.Duration {
	if b.rate == 0 {
		return 0
	}
	return time.Duration(float64(i) / b.rate * float64(time.Second))
}

// volume creates a claim's PV. No provisioner creates or deletes such a PV.
func (r *rig) volume(ctx context.Context, v *view, claim *corev1.PersistentVolumeClaim, kind string) error {
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        fmt.Sprintf("%s-%s-%s", kind, claim.Namespace, claim.Name),
			Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": driverName},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: claimSize}, AccessModes: claim.Spec.AccessModes,
			StorageClassName: *claim.Spec.StorageClassName, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: driverName, VolumeHandle: claim.Namespace + "/" + claim.Name,
				VolumeAttributes: map[string]string{"made-for": string(claim.UID)},
			}},
		},
	}
	if _, err := v.client.CoreV1().PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create PV %s: %w", pv.Name, err)
	}
	return nil
}

// clear deletes the objects of a yardstick, including PVs.
func (r *rig) clear(ctx context.Context, b batch, in views) error {
	if err := b.remove(ctx, in[0].client); err != nil {
		return err
	}
	if err := r.await(ctx, "cleaning up", b.claims, func() int { return in[0].count(claimGone, b.namespace) }); err != nil {
		return err
	}
	for _, v := range in {
		volumes, err := v.client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return fmt.Errorf("list the PVs of %s: %w", v.name, err)
		}
		if err := atOnce(ctx, len(volumes.Items), func(ctx context.Context, i int) error {
			pv := &volumes.Items[i]
			if pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.Namespace != b.namespace {
				return nil
			}
			return v.client.CoreV1().PersistentVolumes().Delete(ctx, pv.Name, metav1.DeleteOptions{})
		}); err != nil {
			return fmt.Errorf("delete the PVs of %s: %w", v.name, err)
		}
	}
	r.forget(b.namespace)
	return nil
}

// yardDriver measures the driver yardstick: a script creates the same objects in host and members.
// The Pods run in both, because nothing mirrors their status. The manager does not run.
func (r *rig) yardDriver(ctx context.Context, p part) error {
	if err := r.x.Manager.Stop(); err != nil {
		return err
	}
	b := batch{class: classDriver, claims: p.claims, rate: p.rate, nodes: r.x.Fleet.Host.NodeNames()}
	leaf := batch{class: classMember, claims: p.claims}
	var err error
	if b.namespace, err = r.space(ctx, p.scenario, append(views{r.host}, r.leaves...)...); err != nil {
		return err
	}
	leaf.namespace = b.namespace
	run := p.run(r, partDriver)
	asked := make([]time.Time, p.claims)
	if err := b.pace(ctx, func(ctx context.Context, i int) error {
		asked[i] = time.Now()
		return r.drive(ctx, b, leaf, i)
	}); err != nil {
		return err
	}
	if err := r.await(ctx, "running", b.claims, func() int { return r.running(b.namespace) }); err != nil {
		return err
	}
	run.Busy = run.busy.processors()
	times := map[string]time.Time{}
	for i, at := range asked {
		times[claimName(i)] = at
	}
	run.Times[askedRuns] = between(times, ofPods(r.host.times(running, b.namespace)))
	run.Times[askedLeafRuns] = between(times, ofPods(r.leaves.times(running, b.namespace)))
	run.finish(r, times, r.host.times(bound, b.namespace))
	for _, v := range r.leaves {
		if err := leaf.remove(ctx, v.client); err != nil {
			return err
		}
	}
	if err := r.await(ctx, "cleaning up", b.claims, func() int { return r.leaves.count(volumeGone, b.namespace) }); err != nil {
		return err
	}
	if err := r.clear(ctx, b, views{r.host}); err != nil {
		return err
	}
	return r.restart(ctx)
}

// drive creates the objects of one claim in the host and in one of the members.
func (r *rig) drive(ctx context.Context, b, leaf batch, i int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		claim, err := r.host.client.CoreV1().PersistentVolumeClaims(b.namespace).Create(ctx, b.claim(i), metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("create claim %d: %w", i, err)
		}
		if _, err := r.host.client.CoreV1().Pods(b.namespace).Create(ctx, b.pod(i), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create Pod %d: %w", i, err)
		}
		return r.volume(ctx, r.host, claim, "driver")
	})
	group.Go(func() error {
		v := r.leaves[i%len(r.leaves)]
		if _, err := v.client.CoreV1().PersistentVolumeClaims(leaf.namespace).Create(ctx, leaf.claim(i), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create leaf claim %d: %w", i, err)
		}
		if _, err := v.client.CoreV1().Pods(leaf.namespace).Create(ctx, leaf.pod(i), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create leaf Pod %d: %w", i, err)
		}
		return nil
	})
	return group.Wait()
}

// restart starts the manager if it is not running, and waits until it is idle and all virtual
// nodes accept Pods.
func (r *rig) restart(ctx context.Context) error {
	if err := r.x.Manager.Start(ctx); err != nil {
		return err
	}
	if err := r.inMembers(ctx, func(ctx context.Context, i int, _ *controlplane.Cluster) error {
		return harness.Await(ctx, "node "+nodeName(i), func(ctx context.Context) error {
			node, err := r.host.client.CoreV1().Nodes().Get(ctx, nodeName(i), metav1.GetOptions{})
			if err != nil {
				return err
			}
			// The node controller adds taints while nobody renews the node's Lease.
			if slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key != v1alpha1.DefaultTaintKey }) {
				return fmt.Errorf("the node has the taints %v", node.Spec.Taints)
			}
			return nil
		})
	}); err != nil {
		return err
	}
	_, err := r.settled(ctx, r.members)
	return err
}

// kept calls do and, until do returns, restarts the manager whenever it exits, as its Deployment
// would.
func (r *rig) kept(ctx context.Context, run *Run, do func() error) error {
	keeping, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-keeping.Done():
				return
			case <-r.x.Manager.Done():
			}
			run.Values[restarts]++
			r.b.say("      the manager exited; restarting it")
			if err := r.x.Manager.Start(keeping); err != nil && keeping.Err() == nil {
				r.b.say("      the manager does not start: %v", err)
			}
		}
	}()
	err := do()
	stop()
	<-ended
	return err
}
