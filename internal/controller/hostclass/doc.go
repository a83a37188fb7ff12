// Package hostclass reports invalid parameters of our classes, by an event on the
// StorageClass itself: the controller host_class, on the leader, one request per class.
// host_claim reports them on the claims. As a class's parameters are immutable, it reports
// once for each class, and once more after a restart of the manager.
package hostclass
