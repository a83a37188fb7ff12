package scenario

import (
	"context"
	"errors"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/test/controlplane/csidriver"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/fault/rig"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// nightly is the name of the snapshot.
const nightly = "nightly"

// snapshots returns the scenarios about the lifecycle of a snapshot of a claim in use.
func snapshots() []Scenario {
	return []Scenario{
		{
			Name: "snapshot", About: "a snapshot of a claim in use is taken", Core: true,
			Setup:   func(ctx context.Context, w *World) error { return w.up(ctx, rig.ClassDelete) },
			Act:     func(ctx context.Context, w *World) error { return w.take(ctx, rig.SnapshotDelete) },
			Settled: do((*World).taken),
		},
		{
			Name: "snapshot-retries", About: "a snapshot of a claim in use is taken, and the driver fails twice, the second time after it has taken the snapshot",
			Setup: func(ctx context.Context, w *World) error {
				of := w.Namespace + "/" + data
				return errors.Join(w.up(ctx, rig.ClassDelete), w.home().SetFaults(
					csidriver.Fault{Method: ledger.CreateSnapshot, Claim: of, Times: 1, Code: codes.ResourceExhausted},
					csidriver.Fault{Method: ledger.CreateSnapshot, Claim: of, Times: 1, Code: codes.DeadlineExceeded, After: true}))
			},
			Act:     func(ctx context.Context, w *World) error { return w.take(ctx, rig.SnapshotDelete) },
			Settled: do((*World).taken),
			Restore: do((*World).provision),
		},
		{
			Name: "snapshot-delete", About: "a snapshot with policy Delete is deleted", Core: true,
			Setup:   func(ctx context.Context, w *World) error { return w.withSnapshot(ctx, rig.SnapshotDelete) },
			Act:     do((*World).deleteSnapshot),
			Settled: do((*World).snapshotDestroyed),
		},
		{
			Name: "snapshot-retain", About: "a snapshot is deleted, with policy Retain in the host",
			Setup:   func(ctx context.Context, w *World) error { return w.withSnapshot(ctx, rig.SnapshotRetain) },
			Act:     do((*World).deleteSnapshot),
			Settled: do((*World).snapshotKept),
		},
		{
			Name: "snapshot-retain-member", About: "a snapshot is deleted, with policy Retain only in the member's class",
			Setup:   func(ctx context.Context, w *World) error { return w.withSnapshot(ctx, rig.SnapshotRetained) },
			Act:     do((*World).deleteSnapshot),
			Settled: do((*World).snapshotKept),
		},
		{
			Name: "snapshot-recreate", About: "a snapshot is deleted and immediately taken again with the same name",
			Setup: func(ctx context.Context, w *World) error { return w.withSnapshot(ctx, rig.SnapshotDelete) },
			Act: func(ctx context.Context, w *World) error {
				if err := w.deleteSnapshot(ctx); err != nil {
					return err
				}
				if err := harness.Await(ctx, "the deletion of the first snapshot in the host", func(ctx context.Context) error {
					return gone[snapshotv1.VolumeSnapshot](ctx, w, w.Host, nightly)
				}); err != nil {
					return err
				}
				return w.take(ctx, rig.SnapshotDelete)
			},
			Settled: do((*World).taken),
		},
	}
}

// hastened returns the scenarios in which a snapshot or its claim is deleted before the snapshot is
// ready, or a member's admin deletes a snapshot.
func hastened() []Scenario {
	return []Scenario{
		{
			Name: "snapshot-withdraw", About: "a snapshot is deleted after the driver has taken it, but before it responds",
			Setup: do((*World).taking),
			Act: func(ctx context.Context, w *World) error {
				return errors.Join(w.deleteSnapshot(ctx), w.provision(ctx))
			},
			Settled: do((*World).snapshotDestroyed),
			Restore: do((*World).provision),
		},
		{
			Name: "snapshot-outlives", About: "a Pod and its claim are deleted before the claim's snapshot is ready: the snapshot is kept",
			Setup: do((*World).uploading),
			Act: func(ctx context.Context, w *World) error {
				return errors.Join(w.deletePair(ctx), w.provision(ctx))
			},
			Settled: func(ctx context.Context, w *World) error {
				return errors.Join(w.destroyed(ctx), w.snapshotReady(ctx), w.snapshots(1))
			},
			Restore: do((*World).provision),
		},
		{
			Name: "snapshot-lost", About: "a member's admin deletes the leaf VolumeSnapshot: its data is kept",
			Setup: func(ctx context.Context, w *World) error { return w.withSnapshot(ctx, rig.SnapshotDelete) },
			Act:   func(ctx context.Context, w *World) error { return w.delete(ctx, w.home(), w.snapshot()) },
			Settled: func(ctx context.Context, w *World) error {
				return errors.Join(gone[snapshotv1.VolumeSnapshot](ctx, w, w.home(), nightly), w.contentFailed(ctx), w.snapshots(1))
			},
		},
	}
}

// home returns the member that has the claim: the noted member or, by default, the first.
func (w *World) home() *harness.Cluster {
	if name := w.Noted("home"); name != "" {
		return w.Member(name)
	}
	return w.Member(rig.One)
}

func (w *World) snapshot() *snapshotv1.VolumeSnapshot {
	return &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: nightly}}
}

// take creates the VolumeSnapshot of the claim.
func (w *World) take(ctx context.Context, class string) error {
	return w.Host.Create(ctx, harness.VolumeSnapshot(w.Namespace, nightly, data, class))
}

func (w *World) deleteSnapshot(ctx context.Context) error { return w.delete(ctx, w.Host, w.snapshot()) }

// withSnapshot calls up and takes a snapshot. Then it changes the disk.
func (w *World) withSnapshot(ctx context.Context, class string) error {
	if err := w.up(ctx, rig.ClassDelete); err != nil {
		return err
	}
	if err := w.take(ctx, class); err != nil {
		return err
	}
	return harness.Await(ctx, "the snapshot", func(ctx context.Context) error { return errors.Join(w.snapshotReady(ctx), w.snapshots(1)) })
}

// taking calls up and takes a snapshot. The driver has taken the snapshot, but stalls before it
// responds.
func (w *World) taking(ctx context.Context) error {
	if err := w.up(ctx, rig.ClassDelete); err != nil {
		return err
	}
	fault := csidriver.Fault{Method: ledger.CreateSnapshot, Claim: w.Namespace + "/" + data, Stall: true, After: true}
	if err := w.home().SetFaults(fault); err != nil {
		return err
	}
	if err := w.take(ctx, rig.SnapshotDelete); err != nil {
		return err
	}
	return harness.Await(ctx, "the driver", func(ctx context.Context) error {
		_, err := get[snapshotv1.VolumeSnapshot](ctx, w, w.home(), nightly)
		return err
	})
}

// uploading calls up and takes a snapshot that becomes ready only after provision is called.
func (w *World) uploading(ctx context.Context) error {
	if err := w.up(ctx, rig.ClassDelete); err != nil {
		return err
	}
	if err := w.home().SetFaults(csidriver.Fault{Method: csidriver.MethodUpload, Claim: w.Namespace + "/" + data}); err != nil {
		return err
	}
	if err := w.take(ctx, rig.SnapshotDelete); err != nil {
		return err
	}
	return harness.Await(ctx, "the snapshot that is not ready", func(ctx context.Context) error {
		content, err := w.content(ctx, w.Host)
		if err != nil {
			return err
		}
		if content.Status == nil || content.Status.SnapshotHandle == nil {
			return fmt.Errorf("content %s has no handle", content.Name)
		}
		return w.snapshots(1)
	})
}

// content returns the content to which the snapshot is bound.
func (w *World) content(ctx context.Context, c *harness.Cluster) (*snapshotv1.VolumeSnapshotContent, error) {
	snapshot, err := get[snapshotv1.VolumeSnapshot](ctx, w, c, nightly)
	if err != nil {
		return nil, err
	}
	if snapshot.Status == nil || snapshot.Status.BoundVolumeSnapshotContentName == nil {
		return nil, fmt.Errorf("snapshot %s has no content in %s", nightly, c.Name())
	}
	content, err := get[snapshotv1.VolumeSnapshotContent](ctx, w, c, *snapshot.Status.BoundVolumeSnapshotContentName)
	if err == nil {
		w.Note("content in "+c.Name(), content.Name)
	}
	return content, err
}

// snapshots returns nil once the member has this many snapshots of the claim.
func (w *World) snapshots(want int) error {
	book, err := w.home().Ledger()
	if err != nil {
		return err
	}
	if live := book.ForClaim(w.Namespace, data).LiveSnapshotIDs(); len(live) != want {
		return fmt.Errorf("%s has the snapshots %v, want %d", w.home().Name(), live, want)
	}
	return nil
}

// taken returns nil once claim and Pod are unchanged and the snapshot is protected.
func (w *World) taken(ctx context.Context) error {
	return errors.Join(w.upAndBound(ctx), w.snapshotHeld(ctx))
}

// snapshotHeld returns nil once the snapshot is ready on both sides, was taken once, and has policy
// Retain in the member.
func (w *World) snapshotHeld(ctx context.Context) error {
	if err := errors.Join(w.snapshotReady(ctx), w.snapshots(1)); err != nil {
		return err
	}
	leaf, err := w.content(ctx, w.home())
	if err != nil {
		return err
	}
	if leaf.Spec.DeletionPolicy != snapshotv1.VolumeSnapshotContentRetain {
		return fmt.Errorf("content %s has policy %s in %s, want Retain", leaf.Name, leaf.Spec.DeletionPolicy, w.home().Name())
	}
	return nil
}

// snapshotReady returns nil once the host shows the snapshot as ready and its content represents
// the leaf content.
func (w *World) snapshotReady(ctx context.Context) error {
	snapshot, err := get[snapshotv1.VolumeSnapshot](ctx, w, w.Host, nightly)
	if err != nil {
		return err
	}
	status := snapshot.Status
	if status == nil || !ptr.Deref(status.ReadyToUse, false) || status.Error != nil || status.RestoreSize == nil {
		return fmt.Errorf("the host shows snapshot %s as %+v, want it ready", nightly, status)
	}
	leaf, err := w.content(ctx, w.home())
	if err != nil {
		return err
	}
	content, err := w.content(ctx, w.Host)
	if err != nil {
		return err
	}
	if want, is := w.IDs[w.home().Name()]+"/"+leaf.Name, ptr.Deref(content.Status.SnapshotHandle, ""); is != want {
		return fmt.Errorf("content %s represents %q, want %q", content.Name, is, want)
	}
	return nil
}

// contentFailed returns nil once the host's content reports a problem. The snapshot-controller does
// not copy it to a VolumeSnapshot that was ready before.
func (w *World) contentFailed(ctx context.Context) error {
	content, err := w.content(ctx, w.Host)
	if err != nil {
		return err
	}
	if content.Status == nil || content.Status.Error == nil || ptr.Deref(content.Status.ReadyToUse, true) {
		return fmt.Errorf("content %s reports %+v, want an error", content.Name, content.Status)
	}
	return nil
}

// snapshotFailed returns nil once the host's VolumeSnapshot reports a problem.
func (w *World) snapshotFailed(ctx context.Context) error {
	snapshot, err := get[snapshotv1.VolumeSnapshot](ctx, w, w.Host, nightly)
	if err != nil {
		return err
	}
	if snapshot.Status == nil || snapshot.Status.Error == nil {
		return fmt.Errorf("snapshot %s reports no problem in the host", nightly)
	}
	return nil
}

// snapshotDestroyed returns nil once the snapshot's objects and data are gone, and its claim
// exists.
func (w *World) snapshotDestroyed(ctx context.Context) error {
	return errors.Join(w.noSnapshot(ctx), w.upAndBound(ctx))
}

// noSnapshot returns nil once the snapshot's objects and data are gone.
func (w *World) noSnapshot(ctx context.Context) error {
	for _, c := range w.Clusters() {
		if err := gone[snapshotv1.VolumeSnapshot](ctx, w, c, nightly); err != nil {
			return err
		}
		var contents snapshotv1.VolumeSnapshotContentList
		if err := c.API.List(ctx, &contents); err != nil {
			return fmt.Errorf("list contents of %s: %w", c.Name(), err)
		}
		for i := range contents.Items {
			if ref := contents.Items[i].Spec.VolumeSnapshotRef; ref.Namespace == w.Namespace {
				return fmt.Errorf("content %s is left in %s", contents.Items[i].Name, c.Name())
			}
		}
	}
	return w.snapshots(0)
}

// snapshotKept returns nil once the VolumeSnapshot is deleted on both sides, but its contents and
// data exist.
func (w *World) snapshotKept(ctx context.Context) error {
	for _, c := range []*harness.Cluster{w.Host, w.home()} {
		if err := gone[snapshotv1.VolumeSnapshot](ctx, w, c, nightly); err != nil {
			return err
		}
		content, err := get[snapshotv1.VolumeSnapshotContent](ctx, w, c, w.Noted("content in "+c.Name()))
		if err != nil {
			return err
		}
		if content.Spec.DeletionPolicy != snapshotv1.VolumeSnapshotContentRetain || content.DeletionTimestamp != nil {
			return fmt.Errorf("content %s in %s is not kept", content.Name, c.Name())
		}
	}
	return errors.Join(w.snapshots(1), w.upAndBound(ctx))
}
