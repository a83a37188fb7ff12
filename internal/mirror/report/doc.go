// Package report builds the conditions that Xylem sets on root claims and Pods, and reads
// what leaf objects and their events report. It is pure.
package report
