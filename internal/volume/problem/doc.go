// Package problem has the reports to users on a claim and its volume that Xylem cannot proceed with:
// one function for each problem. It is pure. The table in package lifecycle determines when they
// apply.
package problem
