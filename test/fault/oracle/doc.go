// Package oracle judges what a run came to. Its input is evidence that others
// collected: every state that the objects went through, as seen past the
// proxies; the CSI drivers' ledgers; the audit logs; the objects at the end. Its
// output is which of the invariants I1 to I6 were violated, and by what.
//
// It is pure: no client, no clock. What Xylem says of itself is no evidence, but
// for one thing that I1 asks for: that an orphaned volume is reported.
package oracle
