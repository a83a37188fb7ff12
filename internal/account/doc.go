// Package account holds what is known of the leaf volumes in each member beyond
// what a cache tells: which of them are orphans, by live reads of both sides, and
// which deletions are stuck. Members' controllers write it, and those of the host
// read it. What could not be read is unknown since a time, never none. Beside that,
// it notes what a member's drivers said they have no room for.
package account
