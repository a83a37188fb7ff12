package guarded

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writer implements the checked writes that both sides share.
type writer struct {
	client  client.Client
	guard   Guard
	cluster string
	side    ClusterSide
	// concurrency limits the number of concurrent writes. nil means no limit.
	concurrency *ConcurrencyLimit
	// recentWrites rejects writes whose preconditions cannot hold.
	recentWrites RecentWrites
}

func newWriter(c client.Client, cluster string, side ClusterSide, guard Guard) writer {
	return writer{client: c, guard: guard, cluster: cluster, side: side, recentWrites: NewRecentWrites(clock.RealClock{})}
}

// beginWrite waits until the write may begin, and then checks that it is allowed. Call the returned function when the write
// has ended.
func (w *writer) beginWrite(ctx context.Context) (func(), error) {
	end, err := w.concurrency.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("wait for earlier writes to the %s: %w", w.side.DisplayName(), err)
	}
	if err := w.guard.CheckFenceHeld(); err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// CheckNotOverwritten returns a conflict if this process has replaced the object's state, so that no write that depends on
// the state can succeed. Call it before the live reads that prove such a write.
func (w *writer) CheckNotOverwritten(obj client.Object) error {
	return w.recentWrites.CheckNotReplaced(WrittenPart{Object: obj.GetUID()}, obj)
}

func (w *writer) createObject(ctx context.Context, by Actor, obj client.Object) error {
	end, err := w.beginWrite(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := w.recentWrites.CheckNotJustCreated(obj); err != nil {
		return err
	}
	err = w.client.Create(ctx, obj, by.fieldOwner())
	if err == nil {
		w.recentWrites.RecordCreation(obj)
	}
	return CountWrite(w.cluster, w.side, "create", obj, err)
}

// patchObject sends the difference between before and after. The API server applies it only if the object
// still equals before.
func (w *writer) patchObject(ctx context.Context, by Actor, before, after client.Object) error {
	return w.sendPatch(ctx, "patch", before, after, func() error { return w.client.Patch(ctx, after, ConditionalPatch(before), by.fieldOwner()) })
}

// sendPatch implements patch. send sends the request.
func (w *writer) sendPatch(ctx context.Context, verb string, before, after client.Object, send func() error) error {
	end, err := w.beginWrite(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := w.CheckNotOverwritten(before); err != nil {
		return err
	}
	uid, version := before.GetUID(), before.GetResourceVersion()
	if err = send(); err == nil {
		w.recentWrites.RecordWrite(WrittenPart{Object: uid}, version, after.GetResourceVersion())
	}
	return CountWrite(w.cluster, w.side, verb, before, err)
}

// applyObjectStatus sends a server-side apply of a status. Without a UID, it could change another object
// with the same name.
func (w *writer) applyObjectStatus(ctx context.Context, by Actor, seen client.Object, status *unstructured.Unstructured) error {
	if status.GetUID() == "" {
		return newForeignError(status, "an apply needs the object's UID")
	}
	end, err := w.beginWrite(ctx)
	if err != nil {
		return err
	}
	defer end()
	applied := WrittenPart{Object: status.GetUID(), Actor: string(by)}
	if err := w.recentWrites.CheckNotReplaced(applied, seen); err != nil {
		return err
	}
	err = w.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(status), by.fieldOwner(), client.ForceOwnership)
	if err == nil {
		w.recentWrites.RecordWrite(applied, seen.GetResourceVersion(), status.GetResourceVersion())
	}
	return CountWrite(w.cluster, w.side, "apply_status", status, err)
}

func (w *writer) deleteObject(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	if obj.GetUID() == "" {
		return newForeignError(obj, "a delete needs the object's UID")
	}
	end, err := w.beginWrite(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := w.CheckNotOverwritten(obj); err != nil {
		return err
	}
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	opts = append([]client.DeleteOption{client.Preconditions{UID: &uid}}, opts...)
	err = w.client.Delete(ctx, obj, opts...)
	if err == nil {
		w.recentWrites.RecordWrite(WrittenPart{Object: uid}, version, "")
		w.recentWrites.RecordDeletion(obj)
	}
	return CountWrite(w.cluster, w.side, "delete", obj, err)
}
