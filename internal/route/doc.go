// Package route decides which member an object of the host belongs to, and enqueues the host's
// events for that member's controllers.
//
// A shared informer never removes a handler, but members connect and disconnect. So the router has
// one permanent handler for each host kind. It looks up the subscriptions of the object's owners
// before and after the change, with one or two map accesses. A subscription is first created and
// then filled from the cache, so that it misses no event. An index of the objects' owners serves
// the second step. Without it, most of the work of a restart would be to scan all objects for each
// source of each member.
//
// A controller can subscribe to the deletions of all members' objects (Ends). After a restore,
// or once an admin has taken a promise from a member, that member may have a leaf of a claim
// that names another member. The leaf does not change when that claim is deleted.
//
// After an informer has lost its watch, it lists again and reports each object as updated. A
// claim, volume or Pod whose resourceVersion is unchanged enqueues nothing, on both sides.
// Otherwise, a restart of an API server would enqueue every volume once for each of its kinds.
// The informers' resync, about every ten hours, does enqueue.
//
// A controller may declare which changes concern it (Concerns). For example, a claim is written
// about eight times until it is bound, but leaf_namespace only reads whether the claim needs
// its namespace.
//
// A restart consists of create events. Three controllers do not get all of them. host_volume and
// recovery get only PVs and claims whose own state requires a decision (concerned, noted).
// cluster_registration gets no PV, claim or Pod that exists at the start, and host_volume gets no
// such claim (SinceStart). These would enqueue only registrations and promises, which are
// reconciled at the start anyway, and no worker starts before its caches are synced. With 24,000
// volumes, a restart mostly consists of evaluating each of them. Everything that proves or mirrors
// a volume gets all events.
//
// # Urgent events
//
// Each source of a controller declares which of its events are urgent (Unhurried). Queue delays
// the others by 250 ms, and the next reconcile of the same request drops them, because the
// cache has an object's new state before its event is handled. So the twenty writes that bind a
// claim cause few reconciles. No event is lost. After a start, workers begin once all queues
// are filled.
package route
