// Package why implements `kubectl xylem why`, which explains why a Pod does not run or a claim is
// not bound, and what to do, in one sentence each. It then lists the evidence.
package why
