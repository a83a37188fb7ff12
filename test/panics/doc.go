// Package panics finds panics in the manager's log. controller-runtime recovers from a panic in
// a reconcile and retries. The process continues, so a test that only checks objects does not
// notice it.
package panics
