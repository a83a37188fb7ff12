// Package hostclaim handles claims of Xylem's classes that no member has yet. Its controller
// host_claim runs on the leader, with one request for each claim. It reports on the claim why it
// cannot be provisioned and what to do: a class that binds immediately, invalid parameters, no
// member, no member with the class. It also removes a selected-node where no provisioner will ever
// provision. The scheduler never removes it and expects provisioners to do so.
//
// Once a claim is placed in a member, root_pvc reports on it.
package hostclaim
