// Package hostclaim handles claims of our classes that no member has yet: the controller
// host_claim, on the leader, one request per claim. It reports on the claim why it cannot
// be provisioned and what to do: a class that binds immediately, invalid parameters, no
// member, no member with the class. It also does what a provisioner owes the scheduler: it
// removes a selected-node on which nothing will ever provision, since the scheduler never
// does.
//
// Once a claim is placed in a member, root_pvc reports on it.
package hostclaim
