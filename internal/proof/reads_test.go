package proof

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// countingCluster counts reads, which last until they are released.
type countingCluster struct {
	reads   atomic.Int32
	release chan struct{}
}

func (c *countingCluster) read(ctx context.Context) (int32, error) {
	n := c.reads.Add(1)
	select {
	case <-c.release:
		return n, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// call is a call of Do that runs in the background.
type call struct {
	got int32
	err error
}

func begin(ctx context.Context, r *SharedReads[string, int32], c *countingCluster) *call {
	done := &call{got: -1}
	go func() { done.got, done.err = r.Do(ctx, "cluster", c.read) }()
	synctest.Wait()
	return done
}

// Callers that ask while a read is in flight share the next one.
func TestLaterCallersShareTheNextRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := &SharedReads[string, int32]{}, &countingCluster{release: make(chan struct{})}
		first := begin(t.Context(), r, c)
		second, third := begin(t.Context(), r, c), begin(t.Context(), r, c)
		c.release <- struct{}{}
		synctest.Wait()
		if first.got != 1 || second.got != -1 || third.got != -1 {
			t.Fatalf("after the first read, the results are %d, %d and %d; want 1 and none: it was sent before the others asked", first.got, second.got, third.got)
		}
		fourth := begin(t.Context(), r, c) // the second read was sent before
		c.release <- struct{}{}
		synctest.Wait()
		if second.got != 2 || third.got != 2 || fourth.got != -1 {
			t.Fatalf("after the second read, the results are %d, %d and %d; want 2, 2 and none", second.got, third.got, fourth.got)
		}
		c.release <- struct{}{}
		synctest.Wait()
		if fourth.got != 3 {
			t.Errorf("the last result is %d, want 3", fourth.got)
		}
		if len(r.byKey) > 0 {
			t.Errorf("the results of %d keys remain in memory", len(r.byKey))
		}
	})
}

// If a caller's context ends while it reads or waits, the others get a result nevertheless.
func TestACancelledCallerFailsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := &SharedReads[string, int32]{}, &countingCluster{release: make(chan struct{})}
		first := begin(t.Context(), r, c)
		reading, cancelReading := context.WithCancel(t.Context())
		waiting, cancelWaiting := context.WithCancel(t.Context())
		second, third, fourth := begin(reading, r, c), begin(waiting, r, c), begin(t.Context(), r, c)
		c.release <- struct{}{}
		synctest.Wait()
		cancelWaiting()
		cancelReading()
		synctest.Wait()
		for _, ended := range []*call{second, third} {
			if !errors.Is(ended.err, context.Canceled) {
				t.Errorf("a caller whose context ended got %d, %v", ended.got, ended.err)
			}
		}
		c.release <- struct{}{}
		synctest.Wait()
		if first.got != 1 || fourth.err != nil || fourth.got != 3 {
			t.Errorf("results are %d and %d, %v; want 1 and 3", first.got, fourth.got, fourth.err)
		}
	})
}

// All callers that share a read get its error.
func TestErrorsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, down := &SharedReads[string, int32]{}, errors.New("connection refused")
		c := &countingCluster{release: make(chan struct{})}
		begin(t.Context(), r, c)
		reads, errs := 0, make([]error, 2)
		for i := range errs {
			go func() {
				_, errs[i] = r.Do(t.Context(), "cluster", func(context.Context) (int32, error) { reads++; return 0, down })
			}()
		}
		synctest.Wait()
		c.release <- struct{}{}
		synctest.Wait()
		if reads != 1 || !errors.Is(errs[0], down) || !errors.Is(errs[1], down) {
			t.Errorf("%d reads, errors %v; want one read whose error both get", reads, errs)
		}
	})
}

// If a read panics, the next caller reads itself. It does not get the result of an earlier read.
func TestAPanicIsNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := &SharedReads[string, int32]{}, &countingCluster{release: make(chan struct{})}
		begin(t.Context(), r, c)
		go func() {
			defer func() { _ = recover() }()
			_, _ = r.Do(t.Context(), "cluster", func(context.Context) (int32, error) { panic("a bug") })
		}()
		synctest.Wait()
		last := begin(t.Context(), r, c)
		c.release <- struct{}{}
		synctest.Wait()
		c.release <- struct{}{}
		synctest.Wait()
		if last.got != 2 || last.err != nil {
			t.Errorf("the last result is %d, %v; want 2, of a read of its own", last.got, last.err)
		}
	})
}

// Many callers race. Each must get a read that began after its call.
func TestNoCallerGetsAnEarlierRead(t *testing.T) {
	var r SharedReads[int, int64]
	var clock atomic.Int64
	var callers sync.WaitGroup
	for i := range 16 {
		callers.Go(func() {
			for n := range 500 {
				asked := clock.Add(1)
				ctx, cancel := context.WithCancel(t.Context())
				if n%7 == i%7 {
					go cancel()
				}
				began, err := r.Do(ctx, i%2, func(context.Context) (int64, error) { return clock.Add(1), nil })
				if err == nil && began <= asked {
					t.Errorf("asked at %d, and got a read that began at %d", asked, began)
				}
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	callers.Wait()
}

// A nil SharedReads is for tests, and for callers that are never concurrent.
func TestNilReadsShareNothing(t *testing.T) {
	var r *SharedReads[string, int]
	if got, err := r.Do(t.Context(), "", func(context.Context) (int, error) { return 7, nil }); got != 7 || err != nil {
		t.Errorf("Do returned %d, %v", got, err)
	}
}
