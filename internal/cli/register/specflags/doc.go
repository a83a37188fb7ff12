// Package specflags has the flags of `kubectl xylem register` that set a registration's
// spec.
package specflags
