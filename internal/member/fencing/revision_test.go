package fencing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
)

// etcd responds to lists with the given revisions in order, and repeats the last one.
type etcd struct {
	client.Reader
	mu        sync.Mutex
	revisions []string
	asked     atomic.Int64
	began     chan struct{} // if not nil, receives a token for each request
	hold      chan struct{} // if not nil, responses wait until it is closed
}

func (e *etcd) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	e.asked.Add(1)
	if e.hold != nil {
		e.began <- struct{}{}
		<-e.hold
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	next := e.revisions[0]
	if len(e.revisions) > 1 {
		e.revisions = e.revisions[1:]
	}
	if next == "" {
		return errors.New("the host does not respond")
	}
	registrations, ok := list.(*v1alpha1.ClusterRegistrationList)
	if !ok {
		return fmt.Errorf("%T", list)
	}
	registrations.ResourceVersion = next
	return nil
}

func TestHostRevision(t *testing.T) {
	for name, tc := range map[string]struct {
		revisions []string
		restored  bool
		highest   uint64
	}{
		"the revision grows":                                    {[]string{"7", "7", "9"}, false, 9},
		"the revision decreased (I2)":                           {[]string{"7", "6"}, true, 7},
		"the revision decreased, then grew again":               {[]string{"7", "6", "12"}, true, 7},
		"the revision decreased while the host did not respond": {[]string{"7", "", "6"}, true, 7},
		"the host did not respond for some time":                {[]string{"7", "", "8"}, false, 8},
		"the revision gains a digit":                            {[]string{"9", "10"}, false, 10},
		"a revision that is not a number":                       {[]string{"7", "x", "7"}, false, 7},
	} {
		t.Run(name, func(t *testing.T) {
			h := NewRevisionMonitor(&etcd{revisions: tc.revisions}, time.Second)
			for range tc.revisions {
				_ = h.CheckRevision(t.Context())
			}
			for what, err := range map[string]error{"Check": h.CheckRevision(t.Context()), "Restored": h.RestoreError()} {
				if errors.Is(err, ErrHostRestored) != tc.restored {
					t.Errorf("%s returned %v, want ErrRestored: %t", what, err, tc.restored)
				}
			}
			if err := h.CheckHostCurrent(t.Context()); errors.Is(err, guarded.ErrSuspended) != tc.restored {
				t.Errorf("Current returned %v, want ErrSuspended: %t", err, tc.restored)
			}
			if got := h.HighestRevision(); got != tc.highest {
				t.Errorf("the highest revision is %d, want %d", got, tc.highest)
			}
		})
	}
	t.Run("evidence other than the revision", func(t *testing.T) {
		h := NewRevisionMonitor(&etcd{revisions: []string{"7"}}, time.Hour)
		h.RecordRestore(errors.New("the Lease's revision decreased"))
		if err := h.Start(t.Context()); !errors.Is(err, ErrHostRestored) || !strings.Contains(err.Error(), "Lease") {
			t.Errorf("Start returned %v, want ErrRestored and the evidence", err)
		}
		f := NewFence(FenceOptions{Duration: lasts, Revision: h})
		if err := f.CheckFenceHeld(); !errors.Is(err, guarded.ErrFenced) || !errors.Is(err, ErrHostRestored) {
			t.Errorf("Held returned %v, want ErrFenced and ErrRestored", err)
		}
	})
	t.Run("the revision of a cached object", func(t *testing.T) {
		h := NewRevisionMonitor(&etcd{revisions: []string{"7"}}, time.Hour)
		seen := h.WrapTransform(func(obj any) (any, error) { return obj, nil })
		for _, version := range []string{"6", "9", "8", ""} {
			if _, err := seen(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := h.CheckRevision(t.Context()); !errors.Is(err, ErrHostRestored) {
			t.Errorf("Check with a host older than a cached object returned %v, want ErrRestored", err)
		}
	})
	t.Run("a nil Monitor", func(t *testing.T) {
		var h *RevisionMonitor
		h.RecordRestore(errors.New("no"))
		if h.CheckRevision(t.Context()) != nil || h.RestoreError() != nil || h.HighestRevision() != 0 {
			t.Error("a nil Monitor returned an error or a revision")
		}
	})
}

// Concurrent destructive steps share a few requests. Each step gets the response to a request
// that began after its call.
func TestHostRevisionIsShared(t *testing.T) {
	const callers = 50
	host := &etcd{revisions: []string{"7"}, hold: make(chan struct{}), began: make(chan struct{}, callers+1)}
	h := NewRevisionMonitor(host, time.Hour)
	var done sync.WaitGroup
	var failures atomic.Int64
	for range callers {
		done.Go(func() {
			if h.CheckRevision(t.Context()) != nil {
				failures.Add(1)
			}
		})
	}
	<-host.began
	close(host.hold)
	done.Wait()
	if failures.Load() > 0 {
		t.Errorf("%d of %d calls failed, want none", failures.Load(), callers)
	}
	before := host.asked.Load()
	if before > callers {
		t.Errorf("%d requests for %d callers, want at most one for each", before, callers)
	}
	if err := h.CheckRevision(t.Context()); err != nil || host.asked.Load() != before+1 {
		t.Errorf("got %v after %d requests; an earlier request must not prove a later step", err, host.asked.Load())
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestHostRevisionOfCaches(t *testing.T) {
	host := &etcd{revisions: []string{"7"}}
	h := NewRevisionMonitor(host, time.Hour)
	revision := 7
	through := h.WrapTransport(roundTrip(func(*http.Request) (*http.Response, error) {
		host.mu.Lock()
		defer host.mu.Unlock()
		host.revisions = []string{strconv.Itoa(revision)}
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://host/api/v1/pods?watch=true", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	send := func() error {
		response, err := through.RoundTrip(request)
		if err == nil {
			_ = response.Body.Close()
		}
		return err
	}
	if err := send(); err != nil {
		t.Errorf("a watch of a host that was not restored returned %v", err)
	}
	revision = 5
	if err := send(); !errors.Is(err, ErrHostRestored) {
		t.Errorf("the cache received the watch of a restored host: %v", err)
	}
}

// heldLease is a member whose Lease is read. Each read waits until it is released.
type heldLease struct {
	client.Client
	reads   atomic.Int64
	release chan int64 // the epoch to return
}

func (l *heldLease) Get(ctx context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	l.reads.Add(1)
	select {
	case at := <-l.release:
		into.SetAnnotations(map[string]string{})
		SetLeaseEpochs(into.(*coordinationv1.Lease), at, 0) //nolint:forcetypeassert // the fence reads nothing else
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Steps that must prove that the member was not restored share a read that was sent after all of them asked.
// A restore after the previous read fails them all.
func TestMemberCurrentIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		member, known := &heldLease{release: make(chan int64)}, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
		SetLeaseEpochs(known, 7, 0)
		f := &Fence{member: member, lastWritten: known}
		errs := make([]error, 4)
		ask := func(ctx context.Context, i int) {
			go func() { errs[i] = f.CheckMemberCurrent(ctx) }()
			synctest.Wait()
		}
		ended, end := context.WithCancel(t.Context())
		ask(t.Context(), 0)
		ask(ended, 1)
		ask(t.Context(), 2)
		ask(t.Context(), 3)
		member.release <- 7
		synctest.Wait()
		end() // of the step that now reads for all
		synctest.Wait()
		member.release <- 6
		synctest.Wait()
		if reads := member.reads.Load(); reads != 3 {
			t.Errorf("%d reads of the Lease; want one for the first step, one that ended with its step, and one for two others", reads)
		}
		if errs[0] != nil || !errors.Is(errs[1], context.Canceled) || !errors.Is(errs[2], guarded.ErrFenced) || !errors.Is(errs[3], guarded.ErrFenced) {
			t.Errorf("the results are %v", errs)
		}
	})
}
