// Package oracle judges a run. Its input is evidence that other packages collected: every state of
// the objects, observed without the proxies; the CSI drivers' ledgers; the audit logs; and the
// objects at the end. Its output is the list of violations of the invariants I1 to I6, with causes.
//
// It is pure: it has no client and no clock. It trusts nothing that Xylem reports, with one
// exception that I1 requires: the report of orphaned volumes.
package oracle
