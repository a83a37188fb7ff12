// Package copysource finds the member that has the data source of a claim: the disk of a clone's
// source claim, or the snapshot to restore. Only that member can create the claim. It is pure and,
// except in Location.Replaced, reads only objects of the host, which a member's admin cannot forge.
package copysource
