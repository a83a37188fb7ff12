package stream

import (
	"sync"

	"github.com/xylem-io/xylem/internal/nodeapi/failure"
)

// Limits bounds the number of open sessions.
type Limits struct {
	// Sessions is the limit for all members together, and MemberSessions the limit for each member.
	Sessions, MemberSessions int
}

// Sessions counts the open sessions, so that one member cannot use up the total (I7).
type Sessions struct {
	Limits Limits

	mu     sync.Mutex
	total  int
	member map[string]int
}

// Take opens a session for a member and returns a function that releases it. It fails if a limit is
// reached.
func (s *Sessions) Take(registration string) (func(), *failure.Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.member[registration] >= s.Limits.MemberSessions:
		return nil, failure.TooMany("member %q has %d sessions for logs, exec, attach and port-forward, which is the limit. End a session, or raise the limit with the manager's flag --node-api-member-sessions", registration, s.Limits.MemberSessions)
	case s.total >= s.Limits.Sessions:
		return nil, failure.TooMany("all members together have %d sessions for logs, exec, attach and port-forward, which is the limit. End a session, or raise the limit with the manager's flag --node-api-sessions", s.Limits.Sessions)
	}
	if s.member == nil {
		s.member = map[string]int{}
	}
	s.total++
	s.member[registration]++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.total--
		if s.member[registration]--; s.member[registration] == 0 {
			delete(s.member, registration)
		}
	}), nil
}

// Open returns the number of open sessions.
func (s *Sessions) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}
