// Package why implements `kubectl xylem why`. One sentence explains why a Pod does not run or a
// claim is not bound, and another one what to do. The evidence follows.
package why
