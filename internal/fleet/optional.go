package fleet

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/leafcache"
	"github.com/xylem-io/xylem/internal/mirror"
)

// optionalLook is the interval at which Xylem tries to read kinds that a member does not serve yet.
const optionalLook = 30 * time.Second

// optional are kinds that a member may not serve, or may not allow Xylem to read. The link to such
// a member still works, and the controllers of these kinds report the problem. If a member stops
// serving them, the link ends, and the next link begins without them.
type optional struct {
	what string
	to   *member.Optional
	// problem returns why the kinds cannot be read.
	problem func(context.Context) (*mirror.Refusal, error)
	// cache creates the cache of these kinds. It calls failed when a watch is rejected.
	cache func(ctx context.Context, failed func(error)) (cache.Cache, error)
}

// snapshots reads the member's snapshots once the host and the member serve them.
func (s *supervisor) snapshots(ctx context.Context, l *member.Link, c *member.Connection, held *leafcache.Held) error {
	select {
	case <-ctx.Done():
		return nil
	case <-l.HostSnapshots.Served():
	}
	return s.serve(ctx, optional{
		what: "snapshots", to: l.Snapshots,
		problem: func(ctx context.Context) (*mirror.Refusal, error) {
			return member.SnapshotsServed(ctx, c.Live, fmt.Sprintf("member %q", l.Registration))
		},
		cache: func(ctx context.Context, failed func(error)) (cache.Cache, error) {
			return leafcache.NewSnapshots(ctx, c, held, s.fleet.Scheme, s.fleet.HostID, failed)
		},
	})
}

// attachments reads the member's VolumeAttachments once the member allows it.
func (s *supervisor) attachments(ctx context.Context, l *member.Link, c *member.Connection, held *leafcache.Held) error {
	return s.serve(ctx, optional{
		what: "VolumeAttachments", to: l.Attachments,
		problem: func(ctx context.Context) (*mirror.Refusal, error) {
			return member.AttachmentsReadable(ctx, c.Live, l.Registration)
		},
		cache: func(ctx context.Context, failed func(error)) (cache.Cache, error) {
			return leafcache.NewAttachments(ctx, c, held, s.fleet.Scheme, failed)
		},
	})
}

// serve runs the cache of optional kinds, from when they can be read until the link ends.
func (s *supervisor) serve(ctx context.Context, o optional) error {
	for {
		problem, err := o.problem(ctx)
		switch {
		case err != nil:
			s.log.V(1).Info("could not check whether the member's optional kinds can be read", "kinds", o.what, "cause", err.Error())
		case problem == nil:
			return s.cache(ctx, o)
		default:
			if _, known := o.to.Problem(); !known {
				s.log.Info("cannot read optional kinds in the member", "kinds", o.what, "reason", problem.Reason, "message", problem.Message)
			}
			o.to.Fail(problem)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.fleet.clock.After(optionalLook):
		}
	}
}

// cache runs the cache of optional kinds until the link ends, or a watch is rejected.
func (s *supervisor) cache(ctx context.Context, o optional) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	built, err := o.cache(ctx, cancel)
	if err != nil {
		return err
	}
	synced := make(chan bool, 1)
	go func() { synced <- built.WaitForCacheSync(ctx) }()
	ended := make(chan error, 1)
	go func() { ended <- built.Start(ctx) }()
	if <-synced && ctx.Err() == nil {
		o.to.Serve(built)
	}
	err = <-ended
	if cause := context.Cause(ctx); err == nil && cause != nil && cause != context.Canceled { //nolint:errorlint // the link's own end
		err = fmt.Errorf("the member rejected the watch of %s: %w", o.what, cause)
	}
	return err
}
