// Package copysource finds the member that has the data source of a claim: the disk of a clone's
// source claim, or the snapshot to restore. Only that member can create the claim's volume. The
// package is pure. Except in Location.Replaced, it reads only objects in the host, which a member's
// admin cannot forge.
package copysource
