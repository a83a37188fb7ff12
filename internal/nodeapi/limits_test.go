package nodeapi

import (
	"net/http"
	"testing"
)

// taker takes sessions and checks the result.
func taker(t *testing.T, s *Sessions) func(member, namespace string, code int) func() {
	return func(member, namespace string, code int) func() {
		t.Helper()
		release, failed := s.OpenSession(member, namespace)
		got := 0
		if failed != nil {
			got = failed.Code
		}
		if got != code {
			t.Errorf("%s, %s: %d, want %d", member, namespace, got, code)
		}
		return release
	}
}

// One member's sessions cannot use up the total (I7).
func TestSessions(t *testing.T) {
	s := Sessions{Limits: SessionLimits{Sessions: 3, MemberSessions: 2}}
	take := taker(t, &s)
	first := take("one", "a", 0)
	take("one", "b", 0)
	take("one", "c", http.StatusTooManyRequests)
	second := take("two", "c", 0)
	take("two", "d", http.StatusTooManyRequests) // the total is reached
	first()
	first() // the second call has no effect
	take("two", "d", 0)
	take("one", "c", http.StatusTooManyRequests)
	second()
	take("one", "c", 0)
}

// A namespace's sessions leave sessions to other namespaces, in each member and in total.
func TestSessionsOfNamespaces(t *testing.T) {
	s := Sessions{Limits: SessionLimits{Sessions: 9, MemberSessions: 4}}
	take := taker(t, &s)
	take("one", "greedy", 0)
	release := take("one", "greedy", 0)
	take("one", "greedy", http.StatusTooManyRequests) // half of the member's sessions
	take("one", "other", 0)
	take("one", "other", http.StatusTooManyRequests)
	release()
	take("one", "greedy", 0)
	take("one", "third", 0)
	take("two", "greedy", 0)
	take("two", "greedy", 0)
	take("three", "greedy", http.StatusTooManyRequests) // half of what others leave of the total
	take("two", "other", 0)
	take("three", "third", 0)
}
