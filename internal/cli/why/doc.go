// Package why is `kubectl xylem why`: one sentence says why a Pod does not run or a claim is not
// bound, one says what to do, and the evidence follows.
package why
