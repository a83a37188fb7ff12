// Package specflags has the flags of `kubectl xylem register` for a registration's spec.
package specflags
