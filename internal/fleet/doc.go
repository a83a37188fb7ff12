// Package fleet holds the links to member clusters.
//
// A Fleet has one supervisor for each registration. The supervisor parses the kubeconfig
// (by an allow-list), connects, reads the member's identity and version, has it admitted
// (cluster_registration: recorded identity, duplicates, the host itself), takes the fence,
// and builds a Link: the member's own transport, clients, caches, controllers and queues.
// internal/manager adds the controllers, which start when the caches are synced.
//
// When the connection, the identity, the fence, the Secret or the spec changes, the Link's
// context ends, the supervisor waits until its controllers have returned, and starts again.
// So no reconciler asks whether its member is connected, and a slow or dead member delays
// nobody else (I7). Nothing connects under a lock; every call to a member has a timeout;
// watches have HTTP/2 health checks.
package fleet
