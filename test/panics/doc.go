// Package panics finds panics in the manager's log. controller-runtime recovers the panic of
// a reconcile and retries: the process lives on, and a test that looks at objects only sees
// nothing of it.
package panics
