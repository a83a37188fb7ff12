// Package settling wraps reconcilers, so that they wait for an event instead of retrying writes that
// package guarded or the API server rejects until a cache or the fence has changed.
package settling
