package guarded

import (
	"context"
	"fmt"

	"golang.org/x/time/rate"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// statusRate is the maximum rate, in bytes per second, of objects whose statuses one member
	// changes, and statusBurst the burst. Each change writes the whole object to the host's etcd,
	// which keeps old versions for five minutes. A thousand Pods that start at once take a third
	// of the burst. On average, the rate allows some 80 changes a second.
	statusRate  = 512 << 10
	statusBurst = 64 << 20
)

func newPace() *rate.Limiter { return rate.NewLimiter(statusRate, statusBurst) }

// sized is implemented by objects that know their encoded size.
type sized interface{ Size() int }

// paced waits until another status of the member may be written, according to the object's
// size. It waits before it takes a turn, so that other writes can proceed.
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
