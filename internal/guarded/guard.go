package guarded

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/mirror"
)

// ErrFenced reports that this process does not hold the member's fence.
var ErrFenced = errors.New("the fence is not held")

// ErrSuspended reports that destruction is suspended until an admin confirms the restore of a
// cluster.
var ErrSuspended = errors.New("destruction is suspended until an admin confirms the restore")

// ErrForeign reports that Xylem must not make a write, because the object does not belong to Xylem,
// or because the write does more than Xylem may do to the object.
var ErrForeign = errors.New("not allowed to write")

// Guard reports whether a member's controllers may currently write.
type Guard interface {
	// CheckFenceHeld returns nil while this process holds the fence. Otherwise, the error wraps ErrFenced.
	CheckFenceHeld() error
	// CheckNotSuspended returns nil while destruction is allowed. Otherwise, the error wraps
	// ErrSuspended.
	CheckNotSuspended() error
	// CheckHostCurrent returns nil if a live read of the host, begun after the call, shows that the host
	// has not been restored since this process started. Otherwise, the error wraps ErrSuspended.
	CheckHostCurrent(context.Context) error
}

// Actor is the controller that writes. It is the field owner and a metric label.
type Actor string

func (a Actor) fieldOwner() client.FieldOwner {
	return client.FieldOwner(mirror.FieldManagerPrefix + string(a))
}

func newForeignError(obj client.Object, why string) error {
	kind := fmt.Sprintf("%T", obj)
	if u, ok := obj.(*unstructured.Unstructured); ok {
		kind = u.GetKind()
	}
	return fmt.Errorf("%w to %s %s: %s", ErrForeign, kind, client.ObjectKeyFromObject(obj), why)
}

// HostOnlyGuard is the guard for writes that concern only the host and do not require a member's fence.
// Leader election guards these writes.
type HostOnlyGuard struct{}

// CheckFenceHeld returns nil.
func (HostOnlyGuard) CheckFenceHeld() error { return nil }

// CheckNotSuspended returns nil, because HostOnlyGuard is not used for writes to members.
func (HostOnlyGuard) CheckNotSuspended() error { return nil }

// CheckHostCurrent returns nil, because HostOnlyGuard is not used for writes to members.
func (HostOnlyGuard) CheckHostCurrent(context.Context) error { return nil }
