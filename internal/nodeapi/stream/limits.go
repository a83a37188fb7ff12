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

// Sessions counts the open sessions, so that one member cannot use up the total (I7), and one
// namespace can use up neither a member's sessions nor the total.
type Sessions struct {
	Limits Limits

	mu     sync.Mutex
	total  pool
	member map[string]*pool
}

// pool counts sessions by namespace.
type pool struct {
	open        int
	inNamespace map[string]int
}

// shares reports whether a namespace may open another session: it must have fewer sessions than are
// free. One namespace alone can thus use half of the limit, and any number of namespaces leave
// sessions to others, without a fixed share that would be idle most of the time.
func (p *pool) shares(namespace string, limit int) bool {
	return p.inNamespace[namespace] < limit-p.open
}

func (p *pool) add(namespace string, n int) {
	if p.inNamespace == nil {
		p.inNamespace = map[string]int{}
	}
	p.open += n
	if p.inNamespace[namespace] += n; p.inNamespace[namespace] == 0 {
		delete(p.inNamespace, namespace)
	}
}

// Take opens a session for a namespace's Pod in a member and returns a function that releases it. It
// fails if a limit is reached.
func (s *Sessions) Take(registration, namespace string) (func(), *failure.Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	member := s.member[registration]
	if member == nil {
		member = &pool{}
	}
	switch {
	case member.open >= s.Limits.MemberSessions:
		return nil, failure.TooMany("member %q has %d sessions for logs, exec, attach and port-forward, which is the limit. End a session, or raise the limit with the manager's flag --node-api-member-sessions", registration, s.Limits.MemberSessions)
	case s.total.open >= s.Limits.Sessions:
		return nil, failure.TooMany("all members together have %d sessions for logs, exec, attach and port-forward, which is the limit. End a session, or raise the limit with the manager's flag --node-api-sessions", s.Limits.Sessions)
	case !member.shares(namespace, s.Limits.MemberSessions):
		return nil, failure.TooMany("namespace %q has %d sessions for logs, exec, attach and port-forward in member %q, which is its share of the limit of %d. End a session, or raise the limit with the manager's flag --node-api-member-sessions", namespace, member.inNamespace[namespace], registration, s.Limits.MemberSessions)
	case !s.total.shares(namespace, s.Limits.Sessions):
		return nil, failure.TooMany("namespace %q has %d sessions for logs, exec, attach and port-forward in all members together, which is its share of the limit of %d. End a session, or raise the limit with the manager's flag --node-api-sessions", namespace, s.total.inNamespace[namespace], s.Limits.Sessions)
	}
	if s.member == nil {
		s.member = map[string]*pool{}
	}
	s.member[registration] = member
	s.total.add(namespace, 1)
	member.add(namespace, 1)
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.total.add(namespace, -1)
		if member.add(namespace, -1); member.open == 0 {
			delete(s.member, registration)
		}
	}), nil
}

// Open returns the number of open sessions.
func (s *Sessions) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total.open
}
