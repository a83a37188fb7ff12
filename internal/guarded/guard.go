package guarded

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrFenced reports that the fence of a member is not, or no longer, ours.
var ErrFenced = errors.New("the fence is not held")

// ErrSuspended reports that nothing may be destroyed until an admin confirms.
var ErrSuspended = errors.New("destruction is suspended until an admin confirms")

// ErrForeign reports that the object is not Xylem's to write to.
var ErrForeign = errors.New("the object is not Xylem's")

// Guard answers whether a member's controllers may write at this moment.
type Guard interface {
	// Held is nil while the fence is Xylem's, else it wraps ErrFenced.
	Held() error
	// MayDestroy is nil while destruction is allowed, else it wraps ErrSuspended.
	MayDestroy() error
	// HostCurrent is nil if a live read of the host, begun now, shows that the host
	// was not restored under this process; it wraps ErrSuspended if it was.
	HostCurrent(context.Context) error
}

// Actor is the controller that writes: the field owner, and a metric's label.
type Actor string

func (a Actor) owner() client.FieldOwner { return client.FieldOwner("xylem-" + string(a)) }

func foreign(obj client.Object, why string) error {
	kind := fmt.Sprintf("%T", obj)
	if u, ok := obj.(*unstructured.Unstructured); ok {
		kind = u.GetKind()
	}
	return fmt.Errorf("%s %s: %w: %s", kind, client.ObjectKeyFromObject(obj), ErrForeign, why)
}

// HostOnly is the guard of writes that concern the host alone and need no
// member's fence: leader election guards those.
type HostOnly struct{}

// Held is nil.
func (HostOnly) Held() error { return nil }

// MayDestroy is nil: nothing in a member is written under this guard.
func (HostOnly) MayDestroy() error { return nil }

// HostCurrent is nil, as MayDestroy is.
func (HostOnly) HostCurrent(context.Context) error { return nil }
