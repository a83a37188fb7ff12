package scenario

import (
	"context"
	"errors"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/fault/rig"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// left returns the scenarios in which a snapshot's member is deregistered.
func left() []Scenario {
	return []Scenario{
		{
			Name: "snapshot-unregister", About: "a snapshot's member is deregistered with policy Retain and registered again: Xylem adopts the snapshot",
			Setup: do((*World).snapshotInTwo),
			Act: func(ctx context.Context, w *World) error {
				if err := w.unregister(ctx); err != nil {
					return err
				}
				if err := harness.Await(ctx, "the end of the registration", w.unregistered); err != nil {
					return err
				}
				return w.registerTwo(ctx)
			},
			Settled: func(ctx context.Context, w *World) error {
				return errors.Join(w.registered(ctx), w.boundInTwo(ctx), w.snapshotHeld(ctx), w.goneFrom(ctx, ""))
			},
		},
		{
			Name: "snapshot-unregister-drain", About: "a snapshot's member is deregistered with policy Drain, and the claim and the snapshot are deleted",
			Setup: func(ctx context.Context, w *World) error {
				if err := w.snapshotInTwo(ctx); err != nil {
					return err
				}
				return patch(ctx, w.Host, registration(), `{"spec":{"deregistration":"Drain"}}`)
			},
			Act: func(ctx context.Context, w *World) error {
				return errors.Join(w.unregister(ctx), w.deleteClaim(ctx), w.deleteSnapshot(ctx))
			},
			Settled: func(ctx context.Context, w *World) error {
				return errors.Join(w.unregistered(ctx), w.nothing(ctx, []string{app, data}, w.Clusters()...), w.disks(rig.Two, data, 0), w.noSnapshot(ctx))
			},
			Restore: do((*World).registerAgain),
		},
		{
			Name: "snapshot-unregister-force", About: "a snapshot's unreachable member is deregistered by force: the host keeps the record of where the snapshot is",
			Setup: do((*World).snapshotInTwo),
			Act:   do((*World).unregisterByForce),
			Settled: func(ctx context.Context, w *World) error {
				return errors.Join(w.unregistered(ctx), w.letGo(ctx), w.goneFrom(ctx, rig.Two), w.contentFailed(ctx), w.snapshots(1))
			},
			Restore: do((*World).reachAgain),
		},
	}
}

// givenUp returns the scenarios in which an admin abandons a snapshot, or a snapshot cannot be
// taken.
func givenUp() []Scenario {
	return []Scenario{
		{
			Name: "snapshot-abandon", About: "an admin abandons a snapshot and deletes it: the member keeps the data as an orphan",
			Setup: func(ctx context.Context, w *World) error { return w.withSnapshot(ctx, rig.SnapshotDelete) },
			Act: func(ctx context.Context, w *World) error {
				content := &snapshotv1.VolumeSnapshotContent{}
				content.Name = w.Noted("content in " + rig.Host)
				if err := patch(ctx, w.Host, content, `{"metadata":{"annotations":{"`+v1alpha1.AnnotationAbandon+`":"true"}}}`); err != nil {
					return err
				}
				return w.deleteSnapshot(ctx)
			},
			Settled: func(ctx context.Context, w *World) error {
				return errors.Join(gone[snapshotv1.VolumeSnapshotContent](ctx, w, w.Host, w.Noted("content in "+rig.Host)), w.orphanedSnapshot(ctx), w.upAndBound(ctx))
			},
		},
		{
			Name: "snapshot-taken", About: "the member has its own VolumeSnapshot with the same name: Xylem reports it and does not change it",
			Setup: func(ctx context.Context, w *World) error {
				if err := w.up(ctx, rig.ClassDelete); err != nil {
					return err
				}
				theirs := harness.VolumeSnapshot(w.Namespace, nightly, "theirs", rig.SnapshotDelete)
				if err := w.home().Create(ctx, theirs); err != nil {
					return err
				}
				w.Note("theirs", string(theirs.UID))
				return nil
			},
			Act: func(ctx context.Context, w *World) error {
				if err := w.take(ctx, rig.SnapshotDelete); err != nil {
					return err
				}
				if err := harness.Await(ctx, "the message for the user", w.snapshotFailed); err != nil {
					return err
				}
				return w.deleteSnapshot(ctx)
			},
			Settled: func(ctx context.Context, w *World) error {
				theirs, err := get[snapshotv1.VolumeSnapshot](ctx, w, w.home(), nightly)
				if err != nil {
					return err
				}
				if string(theirs.UID) != w.Noted("theirs") || theirs.DeletionTimestamp != nil || theirs.Labels[v1alpha1.LabelHost] != "" {
					return fmt.Errorf("the member's own snapshot was replaced, is being deleted, or has labels: %+v", theirs.ObjectMeta)
				}
				return errors.Join(gone[snapshotv1.VolumeSnapshot](ctx, w, w.Host, nightly), w.snapshots(0), w.upAndBound(ctx))
			},
		},
	}
}

// snapshotInTwo creates a claim in the second member that no Pod uses, and a snapshot of it.
func (w *World) snapshotInTwo(ctx context.Context) error {
	w.Note("home", rig.Two)
	if err := w.unusedInTwo(ctx); err != nil {
		return err
	}
	if err := w.take(ctx, rig.SnapshotDelete); err != nil {
		return err
	}
	return harness.Await(ctx, "the snapshot", w.snapshotHeld)
}

// goneFrom returns nil once the host's content reports that its member, with that name, was
// deregistered.
func (w *World) goneFrom(ctx context.Context, registration string) error {
	content, err := w.content(ctx, w.Host)
	if err != nil {
		return err
	}
	if is := content.Annotations[v1alpha1.AnnotationClusterGone]; is != registration {
		return fmt.Errorf("content %s reports %q as deregistered, want %q", content.Name, is, registration)
	}
	return nil
}

// orphanedSnapshot returns nil once the host has no record of the snapshot, but the member has the
// data and the content that protects it.
func (w *World) orphanedSnapshot(ctx context.Context) error {
	for _, c := range []*harness.Cluster{w.Host, w.home()} {
		if err := gone[snapshotv1.VolumeSnapshot](ctx, w, c, nightly); err != nil {
			return err
		}
	}
	content, err := get[snapshotv1.VolumeSnapshotContent](ctx, w, w.home(), w.Noted("content in "+w.home().Name()))
	if err != nil {
		return err
	}
	if content.Spec.DeletionPolicy != snapshotv1.VolumeSnapshotContentRetain || content.DeletionTimestamp != nil {
		return fmt.Errorf("content %s in %s lacks policy Retain or is being deleted", content.Name, w.home().Name())
	}
	return w.snapshots(1)
}
