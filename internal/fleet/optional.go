package fleet

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

// KindReader reads the optional kinds of one link.
type KindReader struct {
	Link        *member.Link
	Connection  *member.Connection
	CacheBudget *leafcache.CacheBudget
	Scheme      *runtime.Scheme
	Clock       clock.Clock
	// RecheckInterval is the interval at which Xylem tries to read kinds that a member does not serve yet.
	RecheckInterval time.Duration
}

// optionalKinds are optional kinds that are read together.
type optionalKinds struct {
	description   string
	optionalCache *member.OptionalCache
	// checkProblem returns why the kinds cannot be read.
	checkProblem func(context.Context) (*mirror.Refusal, error)
	// newCache creates the cache of these kinds. It calls failed when a watch is rejected.
	newCache func(ctx context.Context, failed func(error)) (cache.Cache, error)
}

// ServeSnapshots reads the member's snapshots, once the host and the member serve them, until the
// context ends.
func (r KindReader) ServeSnapshots(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-r.Link.HostSnapshots.ServedChannel():
	}
	return r.serveKinds(ctx, optionalKinds{
		description: "snapshots", optionalCache: r.Link.Snapshots,
		checkProblem: func(ctx context.Context) (*mirror.Refusal, error) {
			return member.SnapshotsServed(ctx, r.Connection.Live, fmt.Sprintf("member %q", r.Link.Registration))
		},
		newCache: func(ctx context.Context, failed func(error)) (cache.Cache, error) {
			return leafcache.NewSnapshotCache(ctx, r.Connection, r.CacheBudget, r.Scheme, r.Link.HostID, failed)
		},
	})
}

// ServeAttachments reads the member's VolumeAttachments, once the member allows it, until the context
// ends.
func (r KindReader) ServeAttachments(ctx context.Context) error {
	return r.serveKinds(ctx, optionalKinds{
		description: "VolumeAttachments", optionalCache: r.Link.Attachments,
		checkProblem: func(ctx context.Context) (*mirror.Refusal, error) {
			return member.AttachmentsReadable(ctx, r.Connection.Live, r.Link.Registration)
		},
		newCache: func(ctx context.Context, failed func(error)) (cache.Cache, error) {
			return leafcache.NewAttachmentCache(ctx, r.Connection, r.CacheBudget, r.Scheme, failed)
		},
	})
}

// ServeBudgets reads the member's PodDisruptionBudgets, once the member lets Xylem create them, until the context ends.
// It reports why the member doesn't, or nil.
func (r KindReader) ServeBudgets(ctx context.Context, report func(*mirror.Refusal)) error {
	return r.serveKinds(ctx, optionalKinds{
		description: "PodDisruptionBudgets", optionalCache: r.Link.Budgets,
		checkProblem: func(ctx context.Context) (*mirror.Refusal, error) {
			problem, err := member.BudgetsWritable(ctx, r.Connection.Live, r.Link.Registration)
			if err == nil {
				report(problem)
			}
			return problem, err
		},
		newCache: func(ctx context.Context, failed func(error)) (cache.Cache, error) {
			return leafcache.NewBudgetCache(ctx, r.Connection, r.CacheBudget, r.Scheme, failed)
		},
	})
}

// ServeServices reads the Services that this host created in the member, once the member lets Xylem create them,
// until the context ends. If the registration reflects Services, it reports why the member doesn't. Otherwise, the
// cache only shows what must be deleted.
func (r KindReader) ServeServices(ctx context.Context, report func(*mirror.Refusal)) error {
	return r.serveKinds(ctx, optionalKinds{
		description: "Services", optionalCache: r.Link.Services,
		checkProblem: func(ctx context.Context) (*mirror.Refusal, error) {
			problem, err := member.ServicesWritable(ctx, r.Connection.Live, r.Link.Registration)
			if err == nil && r.Link.ReflectServices {
				report(problem)
			} else if err == nil {
				report(nil)
			}
			return problem, err
		},
		newCache: func(ctx context.Context, failed func(error)) (cache.Cache, error) {
			return leafcache.NewServiceCache(ctx, r.Connection, r.CacheBudget, r.Scheme, r.Link.HostID, failed)
		},
	})
}

// serveKinds runs the cache of optional kinds, from when they can be read until the link ends.
func (r KindReader) serveKinds(ctx context.Context, k optionalKinds) error {
	for {
		problem, err := k.checkProblem(ctx)
		switch {
		case err != nil:
			r.Link.Log.V(1).Info("could not check whether the member's optional kinds can be read", "kinds", k.description, "cause", err.Error())
		case problem == nil:
			return k.runCache(ctx)
		default:
			if _, known := k.optionalCache.ReadProblem(); !known {
				r.Link.Log.Info("cannot read optional kinds in the member", "kinds", k.description, "reason", problem.Reason, "message", problem.Message)
			}
			k.optionalCache.RecordProblem(problem)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.Clock.After(r.RecheckInterval):
		}
	}
}

// runCache runs the cache of optional kinds until the link ends, or a watch is rejected.
func (k optionalKinds) runCache(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	built, err := k.newCache(ctx, cancel)
	if err != nil {
		return err
	}
	synced := make(chan bool, 1)
	go func() { synced <- built.WaitForCacheSync(ctx) }()
	ended := make(chan error, 1)
	go func() { ended <- built.Start(ctx) }()
	if <-synced && ctx.Err() == nil {
		k.optionalCache.StartServing(built)
	}
	err = <-ended
	if cause := context.Cause(ctx); err == nil && cause != nil && cause != context.Canceled { //nolint:errorlint // the link's own end
		err = fmt.Errorf("the member rejected the watch of %s: %w", k.description, cause)
	}
	return err
}
