// Package problem has the reports to users about a claim or volume with which Xylem cannot proceed,
// one function for each problem. It is pure. The table in package lifecycle determines when they
// apply.
package problem
