// Package why implements `kubectl xylem why`. One sentence says why a Pod does not run or a
// claim is not bound, and another one says what to do. The evidence follows.
package why
