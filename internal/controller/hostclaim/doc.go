// Package hostclaim handles claims of Xylem's classes that no member has yet. Its controller
// host_claim runs on the leader, with one request for each claim. It reports, on each claim, why
// the claim cannot be provisioned and what to do about it, for example if the class binds
// immediately or has invalid parameters, if no member offers the class, or if the claim names a
// volume that does not exist. It also removes selected-node if no provisioner will ever provision a
// volume on that node, because the scheduler leaves the removal to the provisioner.
//
// Once a claim is placed in a member, root_pvc reports on it.
package hostclaim
