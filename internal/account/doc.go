// Package account holds what is known of the leaf volumes in each member beyond the caches:
// which of them are orphans, by live reads of both sides, and which deletions are stuck.
// Members' controllers write it, and the host's controllers read it. What could not be read
// is unknown since a time, never none. It also notes the host PVs that this process created,
// withdrawn claims, and how long claims take.
package account
