package news

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestDue(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	n := New(clock)
	due := func(want bool, state, what, when string) {
		t.Helper()
		got, again := n.EventDue(state, what)
		if got != want {
			t.Errorf("%s: the event %q about %q is due: %t, want %t", when, what, state, got, want)
		}
		if left := n.DueIn(state, what); again != left || again <= 0 {
			t.Errorf("%s: the event %q about %q is due again in %v, want %v", when, what, state, again, left)
		}
	}
	due(true, "pod", "gated", "at first")
	due(false, "pod", "gated", "at once")
	due(true, "other", "gated", "another state")
	due(true, "pod", "refused", "another event")
	due(true, "pod", "gated", "the first event again")
	clock.SetTime(clock.Now().Add(RepeatInterval - time.Second))
	due(false, "pod", "gated", "while the host keeps the event")
	clock.SetTime(clock.Now().Add(time.Second))
	due(true, "pod", "gated", "before the host deletes the event")
	due(false, "pod", "gated", "after the repetition")
	n.ForgetState("pod")
	due(true, "pod", "gated", "when forgotten")
}

func TestLasted(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	n := New(clock)
	lasted := func(want time.Duration, state, what string) {
		t.Helper()
		if got := n.StateDuration(state, what); got != want {
			t.Errorf("%q of %q has lasted %v, want %v", what, state, got, want)
		}
	}
	lasted(0, "pod", "version 1")
	clock.SetTime(clock.Now().Add(time.Second))
	lasted(time.Second, "pod", "version 1")
	lasted(0, "other", "version 1")
	lasted(0, "pod", "version 2")
	clock.SetTime(clock.Now().Add(time.Second))
	lasted(time.Second, "pod", "version 2")
}

func TestDurations(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	d := NewDurations[string](clock)
	for i, step := range []struct {
		state string
		lasts bool
		want  time.Duration
	}{
		{"a", true, 0}, {"a", true, time.Second}, {"b", true, 0}, {"a", true, 3 * time.Second}, {"a", false, 0}, {"a", true, 0}, {"b", true, 4 * time.Second},
	} {
		if got := d.Measure(step.state, step.lasts); got != step.want {
			t.Errorf("step %d: %q has lasted %s, want %s", i, step.state, got, step.want)
		}
		clock.SetTime(clock.Now().Add(time.Second))
	}
}
