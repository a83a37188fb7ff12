// Package facts defines what `kubectl xylem doctor` reads from the host and from members. Package
// collect reads the facts, and package judge evaluates them.
package facts
