package manager

import (
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/xylem-io/xylem/internal/member"
)

// watchSnapshotsOnceServed runs on the leader. It waits until the host serves snapshots, and then starts to
// watch them. Their CustomResourceDefinitions may be installed later, or never.
func (w *wiring) watchSnapshotsOnceServed(ctx context.Context) error {
	for {
		problem, err := member.SnapshotsServed(ctx, w.live, "the host")
		if err == nil && problem == nil {
			return w.watchSnapshots(ctx)
		}
		switch {
		case problem != nil, meta.IsNoMatchError(err):
			w.snapshots.MarkNotServed()
		case ctx.Err() == nil:
			ctrl.LoggerFrom(ctx).Info("could not read the host's snapshots", "cause", err.Error())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.clock.After(w.options.RecheckInterval):
		}
	}
}

func (w *wiring) watchSnapshots(ctx context.Context) error {
	if err := w.router.SetupOptionalHandlers(ctx); err != nil {
		return err
	}
	if _, err := w.mgr.GetCache().GetInformer(ctx, &snapshotv1.VolumeSnapshotClass{}); err != nil {
		return fmt.Errorf("watch the host's VolumeSnapshotClasses: %w", err)
	}
	ctrl.LoggerFrom(ctx).Info("the host serves snapshots")
	w.snapshots.StartServing(w.mgr.GetCache())
	return nil
}
