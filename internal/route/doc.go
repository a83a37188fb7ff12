// Package route says which member an object of the host belongs to, and hands
// the host's events to the queues of that member's controllers.
//
// A shared informer never lets go of a handler, and members come and go: so
// there is one permanent handler for each host kind, which looks up the
// subscriptions of the object's owners, before and after the change, at the
// cost of a map access or two. A subscription is made first and then filled
// from the cache, so that nothing falls between the two.
package route
