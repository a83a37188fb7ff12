package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/leafcache"
)

// snapshotLook is the pause between two attempts to read the snapshots of a member that does not
// serve them.
const snapshotLook = 30 * time.Second

// snapshots reads the member's snapshots once the host and the member serve them. A member that
// does not is linked all the same: the controllers of snapshots report it. One that stops serving
// them ends the link, and the next one begins without them.
func (s *supervisor) snapshots(ctx context.Context, l *member.Link, c *member.Connection, held *leafcache.Held) error {
	select {
	case <-ctx.Done():
		return nil
	case <-l.HostSnapshots.Served():
	}
	for {
		problem, err := member.SnapshotsServed(ctx, c.Live, fmt.Sprintf("member %q", l.Registration))
		switch {
		case err != nil:
			s.log.V(1).Info("the member's snapshots cannot be read", "cause", err.Error())
		case problem == nil:
			return s.cacheSnapshots(ctx, l, c, held)
		default:
			l.Snapshots.Fail(problem)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.fleet.clock.After(snapshotLook):
		}
	}
}

// cacheSnapshots runs their cache until the link ends, or a watch fails.
func (s *supervisor) cacheSnapshots(ctx context.Context, l *member.Link, c *member.Connection, held *leafcache.Held) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	snapshots, err := leafcache.NewSnapshots(ctx, c, held, s.fleet.Scheme, s.fleet.HostID, cancel)
	if err != nil {
		return err
	}
	synced := make(chan bool, 1)
	go func() { synced <- snapshots.WaitForCacheSync(ctx) }()
	ended := make(chan error, 1)
	go func() { ended <- snapshots.Start(ctx) }()
	if <-synced && ctx.Err() == nil {
		l.Snapshots.Serve(snapshots)
	}
	err = <-ended
	if cause := context.Cause(ctx); err == nil && cause != nil && cause != context.Canceled { //nolint:errorlint // the link's own end
		err = fmt.Errorf("the member no longer serves snapshots: %w", cause)
	}
	return err
}
