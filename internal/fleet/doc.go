// Package fleet connects member clusters and holds their Links.
//
// A Fleet has one supervisor for each registration. The supervisor parses the kubeconfig (by an
// allow-list), connects, and reads the member's identity and version. The cluster_registration
// controller then admits the member, unless its identity has changed, or the cluster is the host or
// is already registered. The supervisor acquires the fence and builds a Link: the member's own
// transport, clients, caches, controllers and queues. Package manager adds the controllers, which
// start when the caches are synced.
//
// When the connection, the identity, the fence, the Secret or the spec changes, the Link's context
// ends. The supervisor waits until the controllers have returned, and starts again. Therefore, no
// reconciler checks whether its member is connected, and a slow or dead member does not delay the
// others (I7). No lock is held while connecting. Every call to a member has a timeout, and watches
// have HTTP/2 health checks.
//
// Its part optional reads kinds that a member may not serve, or may not allow Xylem to read: snapshots
// and VolumeAttachments. The link to such a member still works, and the controllers of these kinds
// report the problem. If a member stops serving them, the link ends, and the next link begins
// without them.
//
// Its part probe renews a member's fence, and so detects whether the member still responds.
package fleet
