package pacing

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

// Bytes limits the rate of statuses that one member makes Xylem write to the host.
type Bytes struct{ limiter *rate.Limiter }

// NewBytes returns the limit of one member.
func NewBytes() Bytes { return Bytes{rate.NewLimiter(statusRate, statusBurst)} }

// sized is implemented by objects that know their encoded size.
type sized interface{ Size() int }

// Wait waits until another status of the member may be written, according to the object's size. Call
// it before a turn is taken, so that other writes can proceed.
func (b Bytes) Wait(ctx context.Context, seen client.Object) error {
	object, ok := seen.(sized)
	if !ok {
		return nil
	}
	return b.WaitFor(ctx, object.Size())
}

// WaitFor is Wait for an object of a size.
func (b Bytes) WaitFor(ctx context.Context, size int) error {
	if err := b.limiter.WaitN(ctx, min(size, statusBurst)); err != nil {
		return fmt.Errorf("wait for the member's share of bytes: %w", err)
	}
	return nil
}
