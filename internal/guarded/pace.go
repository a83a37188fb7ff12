package guarded

import (
	"context"
	"fmt"

	"golang.org/x/time/rate"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// statusRate in bytes a second of objects whose statuses one member changes, and
	// statusBurst at once: each change writes the whole object to the host's etcd, which
	// keeps the old ones for five minutes. A thousand Pods that start at once take a
	// third of the burst; in the long run the rate allows some 80 changes a second.
	statusRate  = 512 << 10
	statusBurst = 64 << 20
)

func newPace() *rate.Limiter { return rate.NewLimiter(statusRate, statusBurst) }

// sized are objects that know how long they are once encoded.
type sized interface{ Size() int }

// paced waits until the member may have another status written, by how large the
// object is. It waits before its turn, so that other writes go on.
func (r *Root) paced(ctx context.Context, seen client.Object) error {
	object, ok := seen.(sized)
	if !ok {
		return nil
	}
	if err := r.pace.WaitN(ctx, min(object.Size(), statusBurst)); err != nil {
		return fmt.Errorf("wait for the member's share of bytes: %w", err)
	}
	return nil
}
