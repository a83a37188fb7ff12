package scenario

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/test/controlplane/csidriver"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/fault/rig"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// withdrawn returns the scenarios in which a claim is withdrawn before it is bound.
func withdrawn() []Scenario {
	return []Scenario{
		{
			Name: "withdraw", About: "a Pod and its claim are deleted before the provisioner has begun",
			Setup:   func(ctx context.Context, w *World) error { return w.provisioning(ctx, rig.ClassDelete, false) },
			Act:     do((*World).withdraw),
			Settled: do((*World).withdrawnEntirely),
			Restore: do((*World).provision),
		},
		{
			Name: "withdraw-late", About: "a Pod and its claim are deleted after the driver has created the disk, but before it responds",
			Setup:   func(ctx context.Context, w *World) error { return w.provisioning(ctx, rig.ClassDelete, true) },
			Act:     do((*World).withdraw),
			Settled: do((*World).withdrawnEntirely),
			Restore: do((*World).provision),
		},
		{
			Name: "withdraw-retained", About: "a Pod and its claim are deleted while the disk is being created, with policy Retain in the member's class: the disk is kept, and reported as orphaned",
			Setup: func(ctx context.Context, w *World) error { return w.provisioning(ctx, rig.ClassRetained, true) },
			// The provisioner must not continue before the leaf claim is gone. Otherwise, the
			// volume would be bound for a moment, and stamped if the manager observed that. It would
			// be an orphan in either case, but the end states would differ.
			Act: func(ctx context.Context, w *World) error { return w.withdrawFrom(ctx, w.Host, w.Member(rig.One)) },
			Settled: func(ctx context.Context, w *World) error {
				return errors.Join(w.nothing(ctx, []string{app, data}, w.Clusters()...), w.disks(rig.One, data, 1))
			},
			Restore: do((*World).provision),
		},
		{
			Name: "move", About: "while the disk is being created, the Pod is deleted, and a Pod in the other member uses the claim",
			Setup: func(ctx context.Context, w *World) error { return w.provisioning(ctx, rig.ClassDelete, true) },
			Act:   do((*World).move),
			Settled: func(ctx context.Context, w *World) error {
				return errors.Join(w.running(ctx, app), w.boundInTwo(ctx), w.nothing(ctx, []string{app, data}, w.Member(rig.One)), w.disks(rig.One, data, 0))
			},
			Restore: do((*World).provision),
		},
	}
}

// provisioning creates the pair. The driver stalls before or after it creates the disk.
func (w *World) provisioning(ctx context.Context, class string, made bool) error {
	fault := csidriver.Fault{Method: ledger.CreateVolume, Claim: w.Namespace + "/" + data, Stall: true, After: made}
	if err := w.Member(rig.One).SetFaults(fault); err != nil {
		return err
	}
	if err := w.pair(ctx, class); err != nil {
		return err
	}
	return harness.Await(ctx, "the provisioner", func(ctx context.Context) error {
		if _, err := get[corev1.Pod](ctx, w, w.Member(rig.One), app); err != nil {
			return err
		}
		claim, err := get[corev1.PersistentVolumeClaim](ctx, w, w.Member(rig.One), data)
		if err != nil {
			return err
		}
		if claim.Annotations[selectedNode] == "" {
			return errors.New("the leaf claim has no selected node yet")
		}
		if made {
			return w.disks(rig.One, data, 1)
		}
		return nil
	})
}

// selectedNode is the annotation with the node that the scheduler selected.
const selectedNode = "volume.kubernetes.io/selected-node"

// provision lets the provisioner continue.
func (w *World) provision(context.Context) error { return w.Member(rig.One).SetFaults() }

// move makes the scheduler select a node again. It lets the provisioner continue only once the
// first member has none of the pair's objects. Otherwise, the claim would be bound to the volume,
// and the new Pod would stay Pending, as within a single cluster.
func (w *World) move(ctx context.Context) error {
	if err := w.endApp(ctx); err != nil {
		return err
	}
	if err := patch(ctx, w.Host, w.claim(), `{"metadata":{"annotations":{"`+selectedNode+`":null}}}`); err != nil {
		return err
	}
	if err := w.createApp(ctx, rig.NodeTwo); err != nil {
		return err
	}
	if err := harness.Await(ctx, "the withdrawal from the first member", func(ctx context.Context) error {
		return w.nothing(ctx, []string{app, data}, w.Member(rig.One))
	}); err != nil {
		return err
	}
	return w.provision(ctx)
}

// withdraw deletes the pair, and lets the provisioner continue once the pair is gone in the host.
func (w *World) withdraw(ctx context.Context) error { return w.withdrawFrom(ctx, w.Host) }

// withdrawFrom waits until the pair is deleted in these clusters.
func (w *World) withdrawFrom(ctx context.Context, clusters ...*harness.Cluster) error {
	if err := w.deletePair(ctx); err != nil {
		return err
	}
	if err := harness.Await(ctx, "the deletion of the pair", func(ctx context.Context) error {
		return w.nothing(ctx, []string{app, data}, clusters...)
	}); err != nil {
		return err
	}
	return w.provision(ctx)
}

// withdrawnEntirely returns nil once nothing is left, including the disk that the provisioner
// created.
func (w *World) withdrawnEntirely(ctx context.Context) error {
	if err := w.nothing(ctx, []string{app, data}, w.Clusters()...); err != nil {
		return err
	}
	return w.disks(rig.One, data, 0)
}
