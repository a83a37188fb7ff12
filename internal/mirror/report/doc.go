// Package report makes the conditions that root claims and Pods have of Xylem, and reads
// in leaf objects and their events what these report. It is pure.
package report
