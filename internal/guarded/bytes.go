package guarded

import (
	"context"
	"fmt"

	"golang.org/x/time/rate"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// statusBytesPerSecond limits, in bytes per second, the total size of the objects whose statuses one
	// member changes. statusBurstBytes is the burst in bytes. Each change writes the whole object to the
	// host's etcd, which keeps old versions for five minutes. A thousand Pods that start at the
	// same time take a third of the burst. On average, the rate allows about 80 changes a second.
	statusBytesPerSecond = 512 << 10
	statusBurstBytes     = 64 << 20
)

// ByteRate limits the rate of status writes to the host that one member causes.
type ByteRate struct{ limiter *rate.Limiter }

// NewByteRate returns the limit for one member.
func NewByteRate() ByteRate { return ByteRate{rate.NewLimiter(statusBytesPerSecond, statusBurstBytes)} }

// sized is implemented by objects that can compute their encoded size.
type sized interface{ Size() int }

// Wait waits until the rate allows the status of an object of this size to be written. Call Wait
// before ConcurrencyLimit.Acquire, so that a waiting status does not keep others out.
func (b ByteRate) Wait(ctx context.Context, seen client.Object) error {
	object, ok := seen.(sized)
	if !ok {
		return nil
	}
	return b.WaitFor(ctx, object.Size())
}

// WaitFor works like Wait, for an object of the given size.
func (b ByteRate) WaitFor(ctx context.Context, size int) error {
	if err := b.limiter.WaitN(ctx, min(size, statusBurstBytes)); err != nil {
		return fmt.Errorf("wait for the rate limit of the member's status writes: %w", err)
	}
	return nil
}
