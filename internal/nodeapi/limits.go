package nodeapi

import "sync"

// Limits of the endpoint.
type Limits struct {
	// Sessions in total, and of one member.
	Sessions, MemberSessions int
}

// sessions counts what runs, so that one member's cannot take all there are (I7).
type sessions struct {
	limits Limits

	mu     sync.Mutex
	total  int
	member map[string]int
}

// take a session of a member, and return how to give it back; a failure if there is none.
func (s *sessions) take(registration string) (func(), *failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.member[registration] >= s.limits.MemberSessions:
		return nil, tooMany("member %q has %d sessions of logs, exec, attach and port-forward, which is the limit. End one, or raise the manager's flag --node-api-member-sessions", registration, s.limits.MemberSessions)
	case s.total >= s.limits.Sessions:
		return nil, tooMany("all members together have %d sessions of logs, exec, attach and port-forward, which is the limit. End one, or raise the manager's flag --node-api-sessions", s.limits.Sessions)
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
