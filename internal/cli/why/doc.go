// Package why implements `kubectl xylem why`, which explains in one sentence why a Pod does not run
// or a claim is not bound, in another what to do, and then lists the evidence.
package why
