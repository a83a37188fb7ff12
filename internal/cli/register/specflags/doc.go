// Package specflags defines the flags of `kubectl xylem register` that set fields of a
// registration's spec.
package specflags
