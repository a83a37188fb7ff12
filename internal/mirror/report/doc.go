// Package report builds the conditions that Xylem sets on root claims and Pods, and evaluates
// the state of leaf objects and their events. It is pure.
package report
