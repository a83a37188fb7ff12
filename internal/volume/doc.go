// Package volume describes the observed state of a claim and its volume, in the host and in one
// member (Observed). It is pure. Package observe reads observations from the caches, and package
// lifecycle determines the next step.
//
// Package desired computes the objects that an observed volume needs. Package problem explains to
// users why Xylem cannot proceed with a claim or volume. The table in package lifecycle determines
// when each problem applies.
package volume
