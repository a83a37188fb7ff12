package guarded

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// slow is a client whose writes end only when the test allows it.
type slow struct {
	client.Client
	sent atomic.Int32
	end  chan struct{}
}

func (s *slow) write() error {
	s.sent.Add(1)
	<-s.end
	return nil
}

func (s *slow) Create(context.Context, client.Object, ...client.CreateOption) error { return s.write() }
func (s *slow) Delete(context.Context, client.Object, ...client.DeleteOption) error { return s.write() }
func (s *slow) Status() client.SubResourceWriter                                    { return slowStatus{of: s} }
func (s *slow) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return s.write()
}

type slowStatus struct {
	client.SubResourceWriter
	of *slow
}

func (s slowStatus) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return s.of.write()
}

// closing is a guard whose fence the test can revoke.
type closing struct{ closed atomic.Bool }

func (c *closing) CheckFenceHeld() error {
	if c.closed.Load() {
		return ErrFenced
	}
	return nil
}

func (*closing) CheckNotSuspended() error { return nil }

func (*closing) CheckHostCurrent(context.Context) error { return nil }

// Only a few writes run concurrently, whatever their verb, and the next write begins as soon as one
// ends.
func TestTurns(t *testing.T) {
	for name, write := range map[string]func(context.Context, *HostWriter, int) error{
		"create": func(ctx context.Context, r *HostWriter, i int) error { return r.CreateOwned(ctx, actor, named(i)) },
		"patch": func(ctx context.Context, r *HostWriter, i int) error {
			return r.PatchOwned(ctx, actor, named(i), named(i))
		},
		"delete": func(ctx context.Context, r *HostWriter, i int) error {
			return r.DeleteHostVolume(ctx, named(i), evidenceFor(named(i)))
		},
		"apply": func(ctx context.Context, r *HostWriter, i int) error {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(strconv.Itoa(i))}}
			return r.ApplyStatus(ctx, actor, pod, status("Pod", strconv.Itoa(i)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := clock.RealClock{}.Now()
				host := &slow{end: make(chan struct{}, ConcurrentWrites+1)}
				r := NewHostWriter(host, "cluster38", open)
				var made atomic.Int32
				start(t.Context(), ConcurrentWrites+1, func(ctx context.Context) error { return write(ctx, r, int(made.Add(1))) })
				if sent := host.sent.Load(); sent != ConcurrentWrites {
					t.Errorf("%d writes are in progress, want %d", sent, ConcurrentWrites)
				}
				host.end <- struct{}{}
				synctest.Wait()
				if sent := host.sent.Load(); sent != ConcurrentWrites+1 {
					t.Errorf("%d writes were sent after one ended, want %d", sent, ConcurrentWrites+1)
				}
				close(host.end)
				synctest.Wait()
				if waited := (clock.RealClock{}).Since(began); waited != 0 {
					t.Errorf("turns ended after %v, want immediately", waited)
				}
			})
		})
	}
}

// A waiting write is not sent if the fence is lost or its context ends, and does not delay others
// afterwards.
func TestAbandonedTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := clock.RealClock{}.Now()
		host, fence := &slow{end: make(chan struct{})}, &closing{}
		create := creating(host, fence)
		start(t.Context(), ConcurrentWrites, create)
		unwanted, giveUp := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- create(unwanted) }()
		synctest.Wait()
		giveUp()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("canceled: %v", err)
		}

		for range ConcurrentWrites {
			go func() { ended <- create(t.Context()) }()
		}
		synctest.Wait()
		fence.closed.Store(true)
		close(host.end)
		for range ConcurrentWrites {
			if err := <-ended; !errors.Is(err, ErrFenced) || host.sent.Load() != ConcurrentWrites {
				t.Errorf("a write was sent after the fence was lost: %v", err)
			}
		}
		fence.closed.Store(false)
		if err := create(t.Context()); err != nil {
			t.Error(err)
		}
		if waited := (clock.RealClock{}).Since(began); waited != 0 {
			t.Errorf("turns ended after %v, want immediately", waited)
		}
	})
}

// Slow writes do not delay others for long.
func TestTurnsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := &slow{end: make(chan struct{})}
		create := creating(host, open)
		start(t.Context(), 2*ConcurrentWrites, create)
		for _, want := range []int32{ConcurrentWrites, 2 * ConcurrentWrites} {
			synctest.Wait()
			if sent := host.sent.Load(); sent != want {
				t.Errorf("%d writes were sent, want %d", sent, want)
			}
			clock.RealClock{}.Sleep(SlotTime)
		}
		close(host.end)
		synctest.Wait()
		// No turn was released twice.
		host.end = make(chan struct{})
		start(t.Context(), 2*ConcurrentWrites, create)
		if sent := host.sent.Load(); sent != 3*ConcurrentWrites {
			t.Errorf("%d writes are in progress, want %d", sent-2*ConcurrentWrites, ConcurrentWrites)
		}
		close(host.end)
	})
}

// creating returns a function that creates host PVs with different names.
func creating(host client.Client, fence Guard) func(context.Context) error {
	r := NewHostWriter(host, "cluster38", fence)
	var made atomic.Int32
	return func(ctx context.Context) error { return r.CreateOwned(ctx, actor, named(int(made.Add(1)))) }
}

func named(i int) *corev1.PersistentVolume {
	pv := hostVolume()
	pv.Name, pv.UID = strconv.Itoa(i), types.UID(strconv.Itoa(i))
	return pv
}

// start starts n writes, and waits until each is sent or waits for a turn.
func start(ctx context.Context, n int, create func(context.Context) error) {
	for range n {
		go func() { _ = create(ctx) }()
	}
	synctest.Wait()
}
