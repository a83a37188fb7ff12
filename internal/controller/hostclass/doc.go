// Package hostclass reports invalid parameters of Xylem's classes in an event on the StorageClass
// itself. Its controller host_class runs on the leader and reconciles one class for each request.
// host_claim reports the same problems on the claims. A class's parameters are immutable, so
// host_class reports each class only once, and again after a restart of the manager.
package hostclass
