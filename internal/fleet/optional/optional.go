package optional

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/leafcache"
	"github.com/xylem-io/xylem/internal/mirror"
)

// Reader reads the optional kinds of one link.
type Reader struct {
	Link       *member.Link
	Connection *member.Connection
	Held       *leafcache.Held
	Scheme     *runtime.Scheme
	Clock      clock.Clock
	// Recheck is the interval at which Xylem tries to read kinds that a member does not serve yet.
	Recheck time.Duration
}

// kinds are optional kinds that are read together.
type kinds struct {
	what string
	to   *member.Optional
	// problem returns why the kinds cannot be read.
	problem func(context.Context) (*mirror.Refusal, error)
	// cache creates the cache of these kinds. It calls failed when a watch is rejected.
	cache func(ctx context.Context, failed func(error)) (cache.Cache, error)
}

// Snapshots reads the member's snapshots, once the host and the member serve them, until the
// context ends.
func (r Reader) Snapshots(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-r.Link.HostSnapshots.Served():
	}
	return r.serve(ctx, kinds{
		what: "snapshots", to: r.Link.Snapshots,
		problem: func(ctx context.Context) (*mirror.Refusal, error) {
			return member.SnapshotsServed(ctx, r.Connection.Live, fmt.Sprintf("member %q", r.Link.Registration))
		},
		cache: func(ctx context.Context, failed func(error)) (cache.Cache, error) {
			return leafcache.NewSnapshots(ctx, r.Connection, r.Held, r.Scheme, r.Link.HostID, failed)
		},
	})
}

// Attachments reads the member's VolumeAttachments, once the member allows it, until the context
// ends.
func (r Reader) Attachments(ctx context.Context) error {
	return r.serve(ctx, kinds{
		what: "VolumeAttachments", to: r.Link.Attachments,
		problem: func(ctx context.Context) (*mirror.Refusal, error) {
			return member.AttachmentsReadable(ctx, r.Connection.Live, r.Link.Registration)
		},
		cache: func(ctx context.Context, failed func(error)) (cache.Cache, error) {
			return leafcache.NewAttachments(ctx, r.Connection, r.Held, r.Scheme, failed)
		},
	})
}

// serve runs the cache of optional kinds, from when they can be read until the link ends.
func (r Reader) serve(ctx context.Context, k kinds) error {
	for {
		problem, err := k.problem(ctx)
		switch {
		case err != nil:
			r.Link.Log.V(1).Info("could not check whether the member's optional kinds can be read", "kinds", k.what, "cause", err.Error())
		case problem == nil:
			return k.run(ctx)
		default:
			if _, known := k.to.Problem(); !known {
				r.Link.Log.Info("cannot read optional kinds in the member", "kinds", k.what, "reason", problem.Reason, "message", problem.Message)
			}
			k.to.Fail(problem)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.Clock.After(r.Recheck):
		}
	}
}

// run runs the cache of optional kinds until the link ends, or a watch is rejected.
func (k kinds) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	built, err := k.cache(ctx, cancel)
	if err != nil {
		return err
	}
	synced := make(chan bool, 1)
	go func() { synced <- built.WaitForCacheSync(ctx) }()
	ended := make(chan error, 1)
	go func() { ended <- built.Start(ctx) }()
	if <-synced && ctx.Err() == nil {
		k.to.Serve(built)
	}
	err = <-ended
	if cause := context.Cause(ctx); err == nil && cause != nil && cause != context.Canceled { //nolint:errorlint // the link's own end
		err = fmt.Errorf("the member rejected the watch of %s: %w", k.what, cause)
	}
	return err
}
