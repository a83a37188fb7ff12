package scenario

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/test/controlplane/csidriver"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/fault/rig"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// again is the name of a claim that is restored from the snapshot, and of its Pod.
const again = "again"

// restores returns the scenarios in which a claim is created from a snapshot.
func restores() []Scenario {
	return []Scenario{
		{
			Name: "restore", About: "a claim is restored from a snapshot: one disk is created, in the snapshot's member, with the snapshot's data",
			Setup: func(ctx context.Context, w *World) error { return w.withSnapshot(ctx, rig.SnapshotDelete) },
			Act:   do((*World).restore),
			Settled: func(ctx context.Context, w *World) error {
				return errors.Join(w.taken(ctx), w.restoredOnce(ctx))
			},
		},
		{
			Name: "restore-delete", About: "a snapshot is deleted while a claim is being restored from it: Xylem destroys it only when the new disk exists",
			Setup: func(ctx context.Context, w *World) error {
				return errors.Join(w.withSnapshot(ctx, rig.SnapshotDelete), w.Member(rig.One).SetFaults(
					csidriver.Fault{Method: ledger.CreateVolume, Claim: w.Namespace + "/" + again, Stall: true}))
			},
			Act: func(ctx context.Context, w *World) error {
				if err := w.restore(ctx); err != nil {
					return err
				}
				if err := harness.Await(ctx, "the leaf claim to exist", func(ctx context.Context) error {
					_, err := get[corev1.PersistentVolumeClaim](ctx, w, w.Member(rig.One), again)
					return err
				}); err != nil {
					return err
				}
				return errors.Join(w.deleteSnapshot(ctx), w.provision(ctx))
			},
			Settled: func(ctx context.Context, w *World) error {
				return errors.Join(w.restoredOnce(ctx), w.snapshotDestroyed(ctx))
			},
			Restore: do((*World).provision),
		},
	}
}

// restore creates a claim from the snapshot, and a Pod that uses it.
func (w *World) restore(ctx context.Context) error {
	book, err := w.Member(rig.One).Ledger()
	if err != nil {
		return err
	}
	for _, id := range book.ForClaim(w.Namespace, data).LiveSnapshotIDs() {
		w.Note("snapshot", id)
	}
	if err := w.createClaim(ctx, again, rig.ClassDelete, func(c *corev1.PersistentVolumeClaim) {
		c.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: ptr.To("snapshot.storage.k8s.io"), Kind: "VolumeSnapshot", Name: nightly}
	}); err != nil {
		return err
	}
	return w.createPod(ctx, again, again, rig.NodeOne)
}

// restoredOnce returns nil once the Pod runs and its claim has one disk with the snapshot's data.
func (w *World) restoredOnce(ctx context.Context) error {
	if err := errors.Join(w.running(ctx, again), w.bound(ctx, again, rig.One), w.disks(rig.One, again, 1)); err != nil {
		return err
	}
	book, err := w.Member(rig.One).Ledger()
	if err != nil {
		return err
	}
	for id, disk := range book.ForClaim(w.Namespace, again).Live() {
		if disk.Source != w.Noted("snapshot") {
			return fmt.Errorf("disk %s of claim %s was filled from %q, want snapshot %q", id, again, disk.Source, w.Noted("snapshot"))
		}
	}
	return nil
}
