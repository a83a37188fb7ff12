// Package check implements the charts' hooks: whether an installation works (`helm test`),
// and whether it may be removed (`helm uninstall`). It only reads, and runs as an account
// of its own, not as the manager's.
package check
