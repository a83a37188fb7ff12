package stream

import (
	"net/http"
	"testing"
)

// One member's sessions cannot use up the total (I7).
func TestSessions(t *testing.T) {
	s := Sessions{Limits: Limits{Sessions: 3, MemberSessions: 2}}
	take := func(member string, code int) func() {
		t.Helper()
		release, failed := s.Take(member)
		got := 0
		if failed != nil {
			got = failed.Code
		}
		if got != code {
			t.Errorf("%s: %d, want %d", member, got, code)
		}
		return release
	}
	first := take("one", 0)
	take("one", 0)
	take("one", http.StatusTooManyRequests)
	second := take("two", 0)
	take("two", http.StatusTooManyRequests) // the total is reached
	first()
	first() // the second call has no effect
	take("two", 0)
	take("one", http.StatusTooManyRequests)
	second()
	take("one", 0)
}
