// Package problem explains to users why Xylem cannot proceed with a claim or volume. It has one
// function for each problem, and is pure. The table in package lifecycle determines when
// each problem applies.
package problem
