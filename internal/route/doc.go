// Package route determines to which member a host object belongs, and forwards the host's events to
// that member's controllers.
//
// Handlers of a shared informer are permanent, but members connect and disconnect. So the router
// has one permanent handler for each host kind. The handler looks up the subscriptions of the
// object's owners before and after the change, with one or two map accesses. A subscription is
// first created and then filled from the cache, so that it does not miss events. It is filled
// through an index of the objects' owners. Without this index, most of the work after a restart
// would be to scan all objects for each source of each member.
//
// A controller can subscribe to the deletions of all members' objects (DeletionsSource). After a restore, or
// after an admin has taken a promise from a member, that member may have a leaf of a claim that
// names another member. The leaf does not change when that claim is deleted, so only the
// deletion of the claim can enqueue a request.
//
// After an informer has lost its watch, it lists again and reports each object as updated. In both
// clusters, an object whose resourceVersion is unchanged enqueues nothing. Otherwise, a restart of
// an API server would enqueue every volume once for each of its objects' kinds. The informers'
// resync, about every ten hours, enqueues all objects.
//
// A controller may declare which changes concern it (ConcernsFunc). For example, a claim is written
// about eight times until it is bound, but leaf_namespace reads only whether the claim needs its
// namespace.
//
// After a restart, every existing object causes a create event. Some controllers do not receive
// all of these events. host_volume and recovery receive only PVs and claims whose own state
// requires a decision (concerned and hasRecords of recovery). cluster_registration receives no PVs,
// claims or Pods that exist at the start, and host_volume receives no claims that do (SinceStartPredicate).
// host_claim, source and waiting_pod do not look up what else uses the claims and PVs that exist at the
// start. Such events would enqueue only registrations, promises, claims and Pods, which are reconciled at the start
// anyway, and no worker starts before its caches are synced. With 24,000 volumes, the manager
// spends most of a restart on evaluating each volume. All controllers that prove or mirror volumes
// receive all events.
//
// Its part urgency delays the events that are not urgent, so that many events cause one reconcile.
//
// Each of a controller's sources declares which of its events are urgent (DelayUnlessUrgent). Queue delays
// the other events by 250 ms, and the next reconcile of the same request drops them, because the
// cache contains an object's new state before its event is handled. So the twenty writes that bind
// a claim cause few reconciles. After a start, when all volumes are delayed, Queue adds them to the controller's
// queue only while that is short. No event is lost. After a start, workers begin once the requests
// for all existing objects have been added or delayed.
package route
