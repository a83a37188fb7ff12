package pacing

import (
	"context"
	"fmt"

	"golang.org/x/time/rate"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// statusRate limits, in bytes per second, the total size of the objects whose statuses one
	// member changes. statusBurst is the burst in bytes. Each change writes the whole object to the
	// host's etcd, which keeps old versions for five minutes. A thousand Pods that start at the
	// same time take a third of the burst. On average, the rate allows about 80 changes a second.
	statusRate  = 512 << 10
	statusBurst = 64 << 20
)

// Bytes limits the rate of status writes to the host that one member causes.
type Bytes struct{ limiter *rate.Limiter }

// NewBytes returns the limit for one member.
func NewBytes() Bytes { return Bytes{rate.NewLimiter(statusRate, statusBurst)} }

// sized is implemented by objects that can compute their encoded size.
type sized interface{ Size() int }

// Wait waits until the rate allows the status of an object of this size to be written. Call Wait
// before Turns.Take, so that a waiting status does not occupy a turn.
func (b Bytes) Wait(ctx context.Context, seen client.Object) error {
	object, ok := seen.(sized)
	if !ok {
		return nil
	}
	return b.WaitFor(ctx, object.Size())
}

// WaitFor works like Wait, for an object of the given size.
func (b Bytes) WaitFor(ctx context.Context, size int) error {
	if err := b.limiter.WaitN(ctx, min(size, statusBurst)); err != nil {
		return fmt.Errorf("wait for the rate limit of the member's status writes: %w", err)
	}
	return nil
}
