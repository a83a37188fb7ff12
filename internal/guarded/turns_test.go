package guarded

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// slow is a client whose writes end when they are let.
type slow struct {
	client.Client
	sent atomic.Int32
	end  chan struct{}
}

func (s *slow) Create(context.Context, client.Object, ...client.CreateOption) error {
	s.sent.Add(1)
	<-s.end
	return nil
}

// closing is a guard that can be closed.
type closing struct{ closed atomic.Bool }

func (c *closing) Held() error {
	if c.closed.Load() {
		return ErrFenced
	}
	return nil
}

func (*closing) MayDestroy() error { return nil }

// Few writes to the host are under way at a time. Those that wait are not sent when the
// fence is lost meanwhile, or when nobody wants them any more.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, fence := &slow{end: make(chan struct{})}, &closing{}
		create := creating(host, fence)
		start(t.Context(), atOnce, create)
		unwanted, giveUp := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- create(unwanted) }()
		synctest.Wait()
		giveUp()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("nobody wants it: %v", err)
		}

		go func() { ended <- create(t.Context()) }()
		synctest.Wait()
		if sent := host.sent.Load(); sent != atOnce {
			t.Errorf("%d writes are under way, want %d", sent, atOnce)
		}
		fence.closed.Store(true)
		close(host.end)
		if err := <-ended; !errors.Is(err, ErrFenced) || host.sent.Load() != atOnce {
			t.Errorf("sent after the fence was lost: %v", err)
		}
	})
}

// Writes that something holds up do not hold up others for long.
func TestTurnsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := &slow{end: make(chan struct{})}
		create := creating(host, open)
		start(t.Context(), 2*atOnce, create)
		for _, want := range []int32{atOnce, 2 * atOnce} {
			synctest.Wait()
			if sent := host.sent.Load(); sent != want {
				t.Errorf("%d were sent, want %d", sent, want)
			}
			clock.RealClock{}.Sleep(turn)
		}
		close(host.end)
		synctest.Wait()
		// No turn was given back twice.
		host.end = make(chan struct{})
		start(t.Context(), 2*atOnce, create)
		if sent := host.sent.Load(); sent != 3*atOnce {
			t.Errorf("%d are under way, want %d", sent-2*atOnce, atOnce)
		}
		close(host.end)
	})
}

// creating makes a host PV of another name each time.
func creating(host client.Client, fence Guard) func(context.Context) error {
	r := NewRoot(host, "cluster38", fence)
	var made atomic.Int32
	return func(ctx context.Context) error {
		pv := hostVolume()
		pv.Name = strconv.Itoa(int(made.Add(1)))
		return r.Create(ctx, actor, pv)
	}
}

// start some, and see them get as far as they can.
func start(ctx context.Context, n int, create func(context.Context) error) {
	for range n {
		go func() { _ = create(ctx) }()
	}
	synctest.Wait()
}
