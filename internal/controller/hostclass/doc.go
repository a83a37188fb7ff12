// Package hostclass tells admins, by an event on the StorageClass itself, that a
// class of ours has parameters that nobody can follow: the controller host_class,
// on the leader, one request per class. Their claims are told by host_claim. As a
// class's parameters cannot be changed, that is said once for each class, and once
// more by a manager that is started anew.
package hostclass
