// Package hostclaim looks after claims of our classes that no member has got
// hold of yet: the controller host_claim, on the leader, one request per claim.
// It tells users, by an event on the claim, why nothing can come of it and what
// to do: a class that binds immediately, parameters that nobody understands, no
// member, no member with the class. And it does the one thing that a
// provisioner owes the scheduler: a selected-node on which nothing will ever
// provision is taken off, since the scheduler itself never takes it back.
//
// What a given member has to say on a claim that was placed there is root_pvc's.
package hostclaim
