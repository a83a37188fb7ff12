// Package route says which member an object of the host belongs to, and enqueues the host's
// events for that member's controllers.
//
// A shared informer never removes a handler, and members come and go. So there is one
// permanent handler for each host kind. It looks up the subscriptions of the object's
// owners, before and after the change, at the cost of one or two map accesses. A
// subscription is created first and then filled from the cache, by an index of the objects'
// owners, so that nothing is missed in between. Without the index, looking through all
// objects for each source of each member would be most of the work of a restart.
//
// Of what is deleted, a controller can get the events of all members (Ends): after a restore, or
// once an admin has taken a promise from a member, that member may have a leaf of a claim that
// names another member, and nothing of the leaf changes when that claim goes.
//
// An informer that has lost its watch lists everything again and reports each object as
// updated. A claim, volume or Pod with the resourceVersion that it had enqueues nothing, on
// both sides; otherwise a restart of an API server would enqueue every volume once for each
// of its kinds. The informers' resync, about every ten hours, does enqueue.
//
// A controller may declare which changes concern it (Concerns): a claim is written about
// eight times until it is bound, and leaf_namespace only asks whether the claim needs its
// namespace.
//
// A restart consists of create events. Three controllers do not get all of them.
// host_volume and recovery get only PVs and claims whose own state leaves them something to
// decide (concerned, noted). cluster_registration gets no PV, claim or Pod that exists at
// the start, nor host_volume a claim (SinceStart): these would enqueue only registrations
// and promises, which are reconciled at the start anyway, and no worker starts before its
// caches are synced. With 24,000 volumes, a restart mostly consists of looking at each.
// Everything that proves or mirrors a volume gets all events.
//
// # Urgent events
//
// Each source of a controller says which of its events are urgent (Unhurried). Queue holds
// the others back for 250 ms, and the next reconcile of the same request drops them: the
// cache has an object's new state before its event is handled. So the twenty writes that
// bind a claim are few reconciles. No event is lost. After a start, workers begin once all
// queues are full.
package route
