// Package overwritten remembers which states of objects this process has just replaced, so that no
// write is sent that must miss its precondition.
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
	// memory is how long a write is remembered. Caches usually lag by milliseconds.
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

// Part is the part of an object that a write replaces: the status fields that an actor applies
// or, without an actor, all of it.
type Part struct {
	Object types.UID
	Actor  string
}

// Writes has the states of objects that recent writes of this process replaced. A lagging
// cache may still show such a state. A write with that state as its precondition cannot
// succeed, so it is rejected here, as the API server would reject it, and not sent. The same is
// true for a repeated creation. A server-side apply has no such precondition. But if it is
// decided on the same state as the actor's last one, it mostly has the same content, so it
// waits for the newer state as well.
//
// controller-runtime's EnableReadYourWritesConsistency is no replacement. There, a read waits
// for every write of its kind that has begun, so one slow write of one member would block all
// members' workers (I7), and an unstructured apply does not count for typed reads.
//
// Expired entries are dropped at the next write or creation, so the maps hold those of some
// seconds.
type Writes struct{ versions, made *cache.Expiring }

// New returns the memory of one writer.
func New(c clock.Clock) Writes {
	return Writes{versions: cache.NewExpiringWithClock(c), made: cache.NewExpiringWithClock(c)}
}

// CheckNew returns a conflict if this process created an object of that name a moment ago.
func (w Writes) CheckNew(obj client.Object) error {
	if _, known := w.made.Get(nameOf(obj)); !known {
		return nil
	}
	return conflict(obj, errors.New("it was created a moment ago"))
}

// Created records that this process created an object.
func (w Writes) Created(obj client.Object) { w.made.Set(nameOf(obj), true, memoryOfCreation) }

// Deleted records that this process deleted an object, so that it may create one of the name.
func (w Writes) Deleted(obj client.Object) { w.made.Delete(nameOf(obj)) }

// By records that a write of a part changed its object from one resourceVersion to another. A
// write that changes nothing does not change the resourceVersion.
func (w Writes) By(written Part, before, after string) {
	if written.Object != "" && before != "" && before != after {
		w.versions.Set(written, before, memory)
	}
}

// Check returns a conflict if a write of this process replaced the object's state, for the same
// part.
func (w Writes) Check(written Part, obj client.Object) error {
	version, known := w.versions.Get(written)
	if !known || version != obj.GetResourceVersion() {
		return nil
	}
	return conflict(obj, fmt.Errorf("resourceVersion %s is older than one of Xylem's writes", obj.GetResourceVersion()))
}

func conflict(obj client.Object, err error) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: fmt.Sprintf("%T", obj)}, obj.GetName(), err)
}
