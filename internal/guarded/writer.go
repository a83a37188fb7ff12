package guarded

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/guarded/overwritten"
	"github.com/xylem-io/xylem/internal/guarded/pacing"
	"github.com/xylem-io/xylem/internal/guarded/precondition"
	"github.com/xylem-io/xylem/internal/guarded/results"
)

// writer implements the checked writes that both sides share.
type writer struct {
	client  client.Client
	guard   Guard
	cluster string
	side    results.Side
	// concurrency limits the number of concurrent writes. nil means no limit.
	concurrency *pacing.ConcurrencyLimit
	// overwritten rejects writes whose preconditions cannot hold.
	overwritten overwritten.Writes
}

func newWriter(c client.Client, cluster string, side results.Side, guard Guard) writer {
	return writer{client: c, guard: guard, cluster: cluster, side: side, overwritten: overwritten.New(clock.RealClock{})}
}

// begin waits until the write may begin, and then checks that it is allowed. Call the returned function when the write
// has ended.
func (w *writer) begin(ctx context.Context) (func(), error) {
	end, err := w.concurrency.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("wait for earlier writes to the %s: %w", w.side.Cluster(), err)
	}
	if err := w.guard.Held(); err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// Behind returns a conflict if this process has replaced the object's state, so that no write that depends on
// the state can succeed. Call it before the live reads that prove such a write.
func (w *writer) Behind(obj client.Object) error {
	return w.overwritten.Check(overwritten.Part{Object: obj.GetUID()}, obj)
}

func (w *writer) create(ctx context.Context, by Actor, obj client.Object) error {
	end, err := w.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := w.overwritten.CheckNew(obj); err != nil {
		return err
	}
	err = w.client.Create(ctx, obj, by.owner())
	if err == nil {
		w.overwritten.Created(obj)
	}
	return results.Count(w.cluster, w.side, "create", obj, err)
}

// patch sends the difference between before and after. The API server applies it only if the object
// still equals before.
func (w *writer) patch(ctx context.Context, by Actor, before, after client.Object) error {
	return w.patching(ctx, "patch", before, after, func() error { return w.client.Patch(ctx, after, precondition.Patch(before), by.owner()) })
}

// patching implements patch. send sends the request.
func (w *writer) patching(ctx context.Context, verb string, before, after client.Object, send func() error) error {
	end, err := w.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := w.Behind(before); err != nil {
		return err
	}
	uid, version := before.GetUID(), before.GetResourceVersion()
	if err = send(); err == nil {
		w.overwritten.By(overwritten.Part{Object: uid}, version, after.GetResourceVersion())
	}
	return results.Count(w.cluster, w.side, verb, before, err)
}

// applyStatus sends a server-side apply of a status. Without a UID, it could change another object
// with the same name.
func (w *writer) applyStatus(ctx context.Context, by Actor, seen client.Object, status *unstructured.Unstructured) error {
	if status.GetUID() == "" {
		return foreign(status, "an apply needs the object's UID")
	}
	end, err := w.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	applied := overwritten.Part{Object: status.GetUID(), Actor: string(by)}
	if err := w.overwritten.Check(applied, seen); err != nil {
		return err
	}
	err = w.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(status), by.owner(), client.ForceOwnership)
	if err == nil {
		w.overwritten.By(applied, seen.GetResourceVersion(), status.GetResourceVersion())
	}
	return results.Count(w.cluster, w.side, "apply_status", status, err)
}

func (w *writer) delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	if obj.GetUID() == "" {
		return foreign(obj, "a delete needs the object's UID")
	}
	end, err := w.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := w.Behind(obj); err != nil {
		return err
	}
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	opts = append([]client.DeleteOption{client.Preconditions{UID: &uid}}, opts...)
	err = w.client.Delete(ctx, obj, opts...)
	if err == nil {
		w.overwritten.By(overwritten.Part{Object: uid}, version, "")
		w.overwritten.Deleted(obj)
	}
	return results.Count(w.cluster, w.side, "delete", obj, err)
}
