// Package check implements the charts' hooks: whether an installation works (`helm test`), and
// whether it may be removed (`helm uninstall`). It only reads, and uses its own ServiceAccount,
// not the manager's.
package check
