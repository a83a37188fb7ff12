// Package volume describes the observed state of a claim and its volume, in the host and in one
// member (Observed), computes the objects that they need (leaf PV, host PV, leaf claim), and explains to
// users why Xylem cannot proceed. It is pure. Package observe reads observations from the caches, and the
// table in package lifecycle determines the next step, and when each problem applies.
package volume
