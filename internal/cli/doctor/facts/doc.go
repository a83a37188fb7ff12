// Package facts is what `kubectl xylem doctor` reads of the host and of members, and judges. Package
// collect reads it.
package facts
