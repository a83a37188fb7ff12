package nodeapi

import (
	"sync"
)

// SessionLimits bounds the number of open sessions.
type SessionLimits struct {
	// Sessions is the limit for all members together, and MemberSessions the limit for each member.
	Sessions, MemberSessions int
}

// Sessions counts the open sessions, so that one member cannot use up the total (I7), and one
// namespace can use up neither a member's sessions nor the total.
type Sessions struct {
	Limits SessionLimits

	mu     sync.Mutex
	total  sessionPool
	member map[string]*sessionPool
}

// sessionPool counts sessions by namespace.
type sessionPool struct {
	open        int
	inNamespace map[string]int
}

// mayOpenSession reports whether a namespace may open another session: it must have fewer sessions than are
// free. One namespace alone can thus use half of the limit, and any number of namespaces leave
// sessions to others, without a fixed share that would be idle most of the time.
func (p *sessionPool) mayOpenSession(namespace string, limit int) bool {
	return p.inNamespace[namespace] < limit-p.open
}

func (p *sessionPool) addSessions(namespace string, n int) {
	if p.inNamespace == nil {
		p.inNamespace = map[string]int{}
	}
	p.open += n
	if p.inNamespace[namespace] += n; p.inNamespace[namespace] == 0 {
		delete(p.inNamespace, namespace)
	}
}

// OpenSession opens a session for a namespace's Pod in a member and returns a function that releases it. It
// fails if a limit is reached.
func (s *Sessions) OpenSession(registration, namespace string) (func(), *Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	member := s.member[registration]
	if member == nil {
		member = &sessionPool{}
	}
	switch {
	case member.open >= s.Limits.MemberSessions:
		return nil, TooManyFailure("member %q has %d sessions for logs, exec, attach and port-forward, which is the limit. End a session, or raise the limit with the manager's flag --node-api-member-sessions", registration, s.Limits.MemberSessions)
	case s.total.open >= s.Limits.Sessions:
		return nil, TooManyFailure("all members together have %d sessions for logs, exec, attach and port-forward, which is the limit. End a session, or raise the limit with the manager's flag --node-api-sessions", s.Limits.Sessions)
	case !member.mayOpenSession(namespace, s.Limits.MemberSessions):
		return nil, TooManyFailure("namespace %q has %d sessions for logs, exec, attach and port-forward in member %q, which is its share of the limit of %d. End a session, or raise the limit with the manager's flag --node-api-member-sessions", namespace, member.inNamespace[namespace], registration, s.Limits.MemberSessions)
	case !s.total.mayOpenSession(namespace, s.Limits.Sessions):
		return nil, TooManyFailure("namespace %q has %d sessions for logs, exec, attach and port-forward in all members together, which is its share of the limit of %d. End a session, or raise the limit with the manager's flag --node-api-sessions", namespace, s.total.inNamespace[namespace], s.Limits.Sessions)
	}
	if s.member == nil {
		s.member = map[string]*sessionPool{}
	}
	s.member[registration] = member
	s.total.addSessions(namespace, 1)
	member.addSessions(namespace, 1)
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.total.addSessions(namespace, -1)
		if member.addSessions(namespace, -1); member.open == 0 {
			delete(s.member, registration)
		}
	}), nil
}

// CountOpenSessions returns the number of open sessions.
func (s *Sessions) CountOpenSessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total.open
}
