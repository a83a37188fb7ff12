// Package panics finds panics in the manager's log. If a reconcile panics, controller-runtime
// recovers and retries. The process continues, so a test that checks only objects does not notice
// the panic.
package panics
