// Package overwritten records which object states this process has just replaced, so that the
// process does not send writes whose preconditions cannot hold.
package overwritten

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
	// memory is how long a write is recorded. Caches usually lag by milliseconds.
	memory = 5 * time.Second
	// memoryOfCreation is shorter, because an object that a user deletes must be re-created soon.
	memoryOfCreation = time.Second
)

// name identifies an object before its UID is known.
type name struct {
	kind string
	client.ObjectKey
}

func nameOf(obj client.Object) name {
	return name{fmt.Sprintf("%T", obj), client.ObjectKeyFromObject(obj)}
}

// Part is the part of an object that a write replaces: the status fields that an actor applies or,
// without an actor, the whole object.
type Part struct {
	Object types.UID
	Actor  string
}

// Writes records the object states that this process recently replaced. A lagging cache may still
// show such a state. A write with that state as its precondition cannot succeed, so Writes rejects
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
type Writes struct{ versions, made *cache.Expiring }

// New creates the record of one writer's writes.
func New(c clock.Clock) Writes {
	return Writes{versions: cache.NewExpiringWithClock(c), made: cache.NewExpiringWithClock(c)}
}

// CheckNew returns a conflict if this process has just created an object with the same name.
func (w Writes) CheckNew(obj client.Object) error {
	if _, known := w.made.Get(nameOf(obj)); !known {
		return nil
	}
	return conflict(obj, errors.New("this manager has just created it"))
}

// Created records that this process created an object.
func (w Writes) Created(obj client.Object) { w.made.Set(nameOf(obj), true, memoryOfCreation) }

// Deleted records that this process deleted an object, so that it may create another with the same
// name.
func (w Writes) Deleted(obj client.Object) { w.made.Delete(nameOf(obj)) }

// By records that a write to a part of an object changed the object from one resourceVersion to
// another. A write that changes nothing does not change the resourceVersion.
func (w Writes) By(written Part, before, after string) {
	if written.Object != "" && before != "" && before != after {
		w.versions.Set(written, before, memory)
	}
}

// Check returns a conflict if this process replaced the object's state by a write to the same part.
func (w Writes) Check(written Part, obj client.Object) error {
	version, known := w.versions.Get(written)
	if !known || version != obj.GetResourceVersion() {
		return nil
	}
	return conflict(obj, fmt.Errorf("resourceVersion %s is older than one of Xylem's own writes", obj.GetResourceVersion()))
}

func conflict(obj client.Object, err error) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: fmt.Sprintf("%T", obj)}, obj.GetName(), err)
}
