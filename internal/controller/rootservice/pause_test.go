package rootservice

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestPauses(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	p := &pauses{clock: clock, shortest: 30 * time.Second, byName: map[pausedName]pause{}}
	rejection := errors.New("exceeded quota")
	rests := func(want time.Duration, name pausedName, wantErr error) {
		t.Helper()
		if rest, err := p.remaining(name); rest != want || !errors.Is(err, wantErr) {
			t.Errorf("%v: %s, %v; want %s, %v", name, rest, err, want, wantErr)
		}
	}
	db := types.NamespacedName{Namespace: "shop", Name: "db"}
	p.recordNameTaken(pausedName{false, db})
	rests(nameTakenInterval, pausedName{false, db}, nil)
	rests(0, pausedName{true, db}, nil)
	rests(0, allIn("shop", false), nil)

	for i, want := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, nameTakenInterval, nameTakenInterval} {
		if length := p.recordQuota("shop", false, rejection); length != want {
			t.Errorf("pause %d lasts %s, want %s", i, length, want)
		}
		clock.SetTime(clock.Now().Add(time.Second))
		if rest := p.recordQuota("shop", false, rejection); rest != want-time.Second {
			t.Errorf("a concurrent rejection makes pause %d end in %s, want %s", i, rest, want-time.Second)
		}
		rests(want-time.Second, allIn("shop", false), rejection)
		rests(0, allIn("shop", true), nil)
		rests(0, allIn("other", false), nil)
		clock.SetTime(clock.Now().Add(want - time.Second))
		rests(0, allIn("shop", false), nil)
	}
	rests(0, pausedName{false, db}, nil)
	p.forgetQuota("shop", false)
	if length := p.recordQuota("shop", false, rejection); length != 30*time.Second {
		t.Errorf("after a success, a pause lasts %s, want 30s", length)
	}
	p.forgetQuota("shop", false)
	if len(p.byName) > 0 {
		t.Errorf("%v is remembered, want nothing", p.byName)
	}
}
