// Package batch lets concurrent callers share live reads, as a group commit does with writes: while one
// read is in flight, all later callers wait for the next one. A caller never gets the result of a read
// that was sent before it asked, so a shared read proves as much as one of its own.
package batch
