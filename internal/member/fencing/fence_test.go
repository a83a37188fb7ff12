package fencing

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member/access"
)

const lasts = 15 * time.Second

func leaseOf(holder, version string) *coordinationv1.Lease {
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
	if holder != "" {
		l.Spec.HolderIdentity = &holder
	}
	return l
}

// Each entry is a sequence of a manager's reads of the Lease, with the expected results.
func TestYield(t *testing.T) {
	type look struct {
		after time.Duration
		lease *coordinationv1.Lease
		want  string // reason; empty if the manager may take the fence
	}
	const waiting, cloned, free = v1alpha1.ReasonWaitingForFence, v1alpha1.ReasonHostCloned, ""
	long := leaseOf("other", "1")
	long.Spec.LeaseDurationSeconds = ptr.To[int32](60)
	negative := leaseOf("other", "1")
	negative.Spec.LeaseDurationSeconds = ptr.To[int32](-60)

	for name, looks := range map[string][]look{
		"no lease":                                   {{0, nil, free}},
		"not held":                                   {{0, leaseOf("", "1"), free}},
		"held by this process":                       {{0, leaseOf("me", "1"), free}},
		"held by another process, not renewed":       {{0, leaseOf("other", "1"), waiting}, {lasts - 1, leaseOf("other", "1"), waiting}, {1, leaseOf("other", "1"), free}},
		"renewed during the wait":                    {{0, leaseOf("other", "1"), waiting}, {5 * time.Second, leaseOf("other", "2"), cloned}, {lasts - 1, leaseOf("other", "2"), cloned}, {1, leaseOf("other", "2"), free}},
		"renewed repeatedly":                         {{0, leaseOf("other", "1"), waiting}, {lasts - 1, leaseOf("other", "2"), cloned}, {lasts - 1, leaseOf("other", "3"), cloned}},
		"acquired by another holder during the wait": {{0, leaseOf("other", "1"), waiting}, {5 * time.Second, leaseOf("third", "2"), waiting}, {lasts, leaseOf("third", "2"), free}},
		"released during the wait":                   {{0, leaseOf("other", "1"), waiting}, {time.Second, leaseOf("", "2"), free}},
		"released, then acquired by another holder":  {{0, leaseOf("other", "1"), waiting}, {time.Second, leaseOf("", "2"), free}, {time.Second, leaseOf("other", "3"), waiting}},
		"a longer duration than this fence's":        {{0, long, waiting}, {59 * time.Second, long, waiting}, {time.Second, long, free}},
		"a negative duration":                        {{0, negative, waiting}, {lasts, negative, free}},
	} {
		t.Run(name, func(t *testing.T) {
			now := clocktesting.NewFakePassiveClock(time.Now())
			f := &Fence{clock: now, identity: "me", duration: lasts}
			for i, l := range looks {
				now.SetTime(now.Now().Add(l.after))
				got := ""
				if err := f.yieldToHolder(l.lease); err != nil {
					p := &access.ConnectionProblem{}
					if !errors.As(err, &p) {
						t.Fatalf("read %d: error %v is not a Problem", i, err)
					}
					got = p.Reason
				}
				if got != l.want {
					t.Errorf("read %d: %q, want %q", i, got, l.want)
				}
			}
		})
	}
}

// fixed is a clock whose wall and monotonic readings the test sets.
type fixed struct {
	clock.PassiveClock
	now time.Time
}

func (f *fixed) Now() time.Time { return f.now }

// later advances the wall and the monotonic reading of a time by different durations, as happens
// when a machine is suspended or an admin sets the clock. Package time does not offer this.
func later(at time.Time, wall, monotonic time.Duration) time.Time {
	at = at.Add(wall)
	field := reflect.ValueOf(&at).Elem().FieldByName("ext")                  // the monotonic reading in nanoseconds
	*(*int64)(unsafe.Pointer(field.UnsafeAddr())) += int64(monotonic - wall) //nolint:gosec // of a time that has a monotonic reading
	return at
}

func TestHeld(t *testing.T) {
	const deadline = lasts * 2 / 3
	for name, tc := range map[string]struct {
		wall, monotonic time.Duration
		never, want     bool
	}{
		"never acquired":            {never: true},
		"just renewed":              {want: true},
		"at the deadline":           {wall: deadline, monotonic: deadline, want: true},
		"past the deadline":         {wall: deadline + 1, monotonic: deadline + 1},
		"the machine was suspended": {wall: time.Hour, monotonic: time.Second},
		"the process was frozen and the clock was set back": {wall: -time.Hour, monotonic: time.Hour},
		"the clock was set back":                            {wall: -time.Hour, monotonic: time.Second, want: true},
		"the clock was set a little forward":                {wall: deadline, monotonic: time.Second, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			c := &fixed{now: later(start, tc.wall, tc.monotonic)}
			if got := c.now.Sub(start); got != tc.monotonic {
				t.Fatalf("the monotonic clock moved by %s, want %s", got, tc.monotonic)
			}
			if got := c.now.Round(0).Sub(start.Round(0)); got != tc.wall {
				t.Fatalf("the wall clock moved by %s, want %s", got, tc.wall)
			}
			f := NewFence(FenceOptions{Clock: c, Duration: lasts})
			if !tc.never {
				f.lease, f.renewed = leaseOf("me", "1"), start
			}
			err := f.CheckFenceHeld()
			if (err == nil) != tc.want || err != nil && !errors.Is(err, guarded.ErrFenced) {
				t.Errorf("Held returned %v, want nil: %t", err, tc.want)
			}
			f.StopWrites()
			if f.CheckFenceHeld() == nil {
				t.Error("the fence is still held after Drop")
			}
		})
	}
}

func TestMayDestroy(t *testing.T) {
	f := &Fence{}
	if err := f.CheckNotSuspended(); err != nil || f.SuspensionProblem() != nil {
		t.Errorf("suspended without a reason: %v", err)
	}
	f.suspension = access.ConnectionProblemf(v1alpha1.ReasonHostRestored, "the host was restored")
	if err := f.CheckNotSuspended(); !errors.Is(err, guarded.ErrSuspended) || !strings.Contains(err.Error(), "the host was restored") {
		t.Errorf("error is %v, want ErrSuspended and the reason", err)
	}
}
