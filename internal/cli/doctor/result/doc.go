// Package result defines the output of `kubectl xylem doctor`: a checkup with its findings. Package
// judge and the packages below it create the findings.
package result
