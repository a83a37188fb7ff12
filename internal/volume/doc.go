// Package volume is what is observed of a claim and its volume: in the host, and in one member
// (Observed). It is pure: package observe reads observations from the caches, and package lifecycle
// says what comes next.
//
// An observation also says what the objects are to become (StampedLeaf, CurrentHost, LeafClaim and
// the like), and what the user reads where nothing can be done (the methods that begin with
// Report). The table in package lifecycle says when.
package volume
