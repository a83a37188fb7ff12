// Package fleet holds the links to member clusters.
//
// A Fleet has one supervisor for each registration. The supervisor connects,
// asks who answers, takes the fence, and then runs a session: a member.Link, which is
// the member's own transport, clients, caches, controllers and queues. When the
// connection, the identity or the fence is lost, the Link's context ends, the
// supervisor waits until its controllers have returned, and begins again. So no
// reconciler asks whether its member is connected, and a member that answers
// slowly or not at all holds up nobody but itself (I7).
//
// Nothing connects under a lock, and every call to a member has a timeout.
package fleet
