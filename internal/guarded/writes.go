// This file records which object states this process has just replaced, so that the
// process does not send writes whose preconditions cannot hold.

package guarded

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// writeMemory is how long a write is recorded. Caches usually lag by milliseconds.
	writeMemory = 5 * time.Second
	// creationMemory is shorter, because an object that a user deletes must be re-created soon.
	creationMemory = time.Second
)

// objectName identifies an object before its UID is known.
type objectName struct {
	kind string
	client.ObjectKey
}

func objectNameOf(obj client.Object) objectName {
	return objectName{fmt.Sprintf("%T", obj), client.ObjectKeyFromObject(obj)}
}

// WrittenPart is the part of an object that a write replaces: the status fields that an actor applies or,
// without an actor, the whole object.
type WrittenPart struct {
	Object types.UID
	Actor  string
}

// RecentWrites records the object states that this process recently replaced. A lagging cache may still
// show such a state. A write with that state as its precondition cannot succeed, so RecentWrites rejects
// it without sending it, as the API server would. The same is true for a repeated creation. A
// server-side apply has no such precondition. But if it is based on the same state as the actor's
// previous apply, it usually has the same content, so it also waits for the newer state.
//
// controller-runtime's EnableReadYourWritesConsistency cannot replace this package. With that
// option, a read waits for all writes in flight for its kind, so one member's slow write would
// block all members' workers (I7). Also, typed reads do not wait for an unstructured apply.
//
// Expired entries are dropped at the next write or creation, so the maps contain only entries from
// the last few seconds.
type RecentWrites struct{ replacedVersions, created *cache.Expiring }

// NewRecentWrites creates the record of one writer's writes.
func NewRecentWrites(c clock.Clock) RecentWrites {
	return RecentWrites{replacedVersions: cache.NewExpiringWithClock(c), created: cache.NewExpiringWithClock(c)}
}

// CheckNotJustCreated returns a conflict if this process has just created an object with the same name.
func (w RecentWrites) CheckNotJustCreated(obj client.Object) error {
	if _, known := w.created.Get(objectNameOf(obj)); !known {
		return nil
	}
	return newConflictError(obj, errors.New("this manager has just created it"))
}

// RecordCreation records that this process created an object.
func (w RecentWrites) RecordCreation(obj client.Object) {
	w.created.Set(objectNameOf(obj), true, creationMemory)
}

// RecordDeletion records that this process deleted an object, so that it may create another with the same
// name.
func (w RecentWrites) RecordDeletion(obj client.Object) { w.created.Delete(objectNameOf(obj)) }

// RecordWrite records that a write to a part of an object changed the object from one resourceVersion to
// another. A write that changes nothing does not change the resourceVersion.
func (w RecentWrites) RecordWrite(written WrittenPart, before, after string) {
	if written.Object != "" && before != "" && before != after {
		w.replacedVersions.Set(written, before, writeMemory)
	}
}

// CheckNotReplaced returns a conflict if this process replaced the object's state by a write to the same part.
func (w RecentWrites) CheckNotReplaced(written WrittenPart, obj client.Object) error {
	version, known := w.replacedVersions.Get(written)
	if !known || version != obj.GetResourceVersion() {
		return nil
	}
	return newConflictError(obj, fmt.Errorf("resourceVersion %s is older than one of Xylem's own writes", obj.GetResourceVersion()))
}

func newConflictError(obj client.Object, err error) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: fmt.Sprintf("%T", obj)}, obj.GetName(), err)
}
