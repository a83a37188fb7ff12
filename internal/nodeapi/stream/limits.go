package stream

import (
	"sync"

	"github.com/xylem-io/xylem/internal/nodeapi/failure"
)

// Limits of the endpoint.
type Limits struct {
	// Sessions in total, and of one member.
	Sessions, MemberSessions int
}

// Sessions counts what runs, so that one member's cannot take all there are (I7).
type Sessions struct {
	Limits Limits

	mu     sync.Mutex
	total  int
	member map[string]int
}

// Take a session of a member, and return how to give it back; a failure if there is none.
func (s *Sessions) Take(registration string) (func(), *failure.Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.member[registration] >= s.Limits.MemberSessions:
		return nil, failure.TooMany("member %q has %d sessions of logs, exec, attach and port-forward, which is the limit. End one, or raise the manager's flag --node-api-member-sessions", registration, s.Limits.MemberSessions)
	case s.total >= s.Limits.Sessions:
		return nil, failure.TooMany("all members together have %d sessions of logs, exec, attach and port-forward, which is the limit. End one, or raise the manager's flag --node-api-sessions", s.Limits.Sessions)
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

// Open sessions in total.
func (s *Sessions) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}
