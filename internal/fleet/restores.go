package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member/fencing"
)

// recordsRetryDelay is the delay after the host's records could not be read.
const recordsRetryDelay = time.Second

// readHostRestores reads the host's records of all registered members, including those that are
// away. It retries until it succeeds or the context ends. Later restores are noted when a fence
// detects them.
func (f *Fleet) readHostRestores(ctx context.Context) {
	for {
		err := f.tryReadHostRestores(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		f.Log.Info("waiting to connect the members", "cause", err.Error())
		select {
		case <-ctx.Done():
			return
		case <-f.clock.After(recordsRetryDelay):
		}
	}
}

func (f *Fleet) tryReadHostRestores(ctx context.Context) error {
	var all v1alpha1.ClusterRegistrationList
	if err := f.HostLive.List(ctx, &all); err != nil {
		return fmt.Errorf("list the registered members: %w", err)
	}
	for i := range all.Items {
		f.restores.AwaitMember(all.Items[i].Name)
		id := all.Items[i].Status.ClusterID
		if id == "" {
			continue // never connected before the restore, so no record contains it
		}
		record, err := fencing.ReadLiveLease(ctx, f.HostLive, f.Namespace, fencing.HostRecordName(id))
		if err != nil {
			return fmt.Errorf("read the record of cluster %s: %w", id, err)
		}
		f.restores.RecordRestore(fencing.HostRestoreTime(record))
	}
	return nil
}
