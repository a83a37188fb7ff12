// Package oracle judges a run. Its input is evidence that other packages collected: every state of
// the objects, observed without the proxies; the CSI drivers' ledgers; the audit logs; and the
// objects at the end. Its output is the list of violated invariants (I1 to I6, and I8), with
// causes.
//
// The package has no client and no clock. It does not rely on Xylem's own reports, except for the
// report of orphaned volumes, which I1 requires.
package oracle
