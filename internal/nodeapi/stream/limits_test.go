package stream

import (
	"net/http"
	"testing"
)

// One member's sessions leave some for the others (I7).
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
	take("two", http.StatusTooManyRequests) // of all
	first()
	first() // counts once
	take("two", 0)
	take("one", http.StatusTooManyRequests)
	second()
	take("one", 0)
}
