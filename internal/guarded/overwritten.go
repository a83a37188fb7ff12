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
	// memory of a write: caches are behind by milliseconds as a rule.
	memory = 5 * time.Second
	// memoryOfCreation is shorter: somebody may take away what we made, and then it is
	// to be re-created.
	memoryOfCreation = time.Second
)

// name of an object, as caches have it before they know of a UID.
type name struct {
	kind string
	client.ObjectKey
}

func nameOf(obj client.Object) name {
	return name{fmt.Sprintf("%T", obj), client.ObjectKeyFromObject(obj)}
}

// part of an object that a write replaces: what an actor applies of its status, or, by
// nobody, all of it.
type part struct {
	object types.UID
	actor  Actor
}

// overwritten is which states of objects writes of ours have replaced a moment ago. A
// write on condition of such a state, which a cache that is behind still shows, cannot
// succeed: it is refused here, as the API server would, and not sent. Nor is the creation
// of what was created a moment ago. An apply has no such condition; but on the very state that
// an actor's last one was decided on, it mostly has the same content, and waits for the newer
// state as well.
//
// controller-runtime's EnableReadYourWritesConsistency does not replace it: a read waits
// there for every write of its kind that has begun, so that one slow write of one member
// holds all members' workers (I7), and an apply that is unstructured counts for no typed read.
//
// What has expired is let go at the next write, or creation: they hold those of some seconds.
type overwritten struct{ versions, made *cache.Expiring }

func newOverwritten(c clock.Clock) overwritten {
	return overwritten{versions: cache.NewExpiringWithClock(c), made: cache.NewExpiringWithClock(c)}
}

// checkNew returns a conflict if we made an object of that name a moment ago.
func (o overwritten) checkNew(obj client.Object) error {
	if _, known := o.made.Get(nameOf(obj)); !known {
		return nil
	}
	return conflict(obj, errors.New("it was created a moment ago"))
}

// by notes that a write of a part has taken its object from one resourceVersion to
// another. A write that changed nothing leaves the version as it was.
func (o overwritten) by(written part, before, after string) {
	if written.object != "" && before != "" && before != after {
		o.versions.Set(written, before, memory)
	}
}

// check returns a conflict if the object is in a state that a write of ours replaced,
// of the same part.
func (o overwritten) check(written part, obj client.Object) error {
	version, known := o.versions.Get(written)
	if !known || version != obj.GetResourceVersion() {
		return nil
	}
	return conflict(obj, fmt.Errorf("resourceVersion %s is older than a write of ours", obj.GetResourceVersion()))
}

func conflict(obj client.Object, err error) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: fmt.Sprintf("%T", obj)}, obj.GetName(), err)
}
