// Package check implements the charts' hooks, which check whether an installation works (`helm
// test`), and whether it may be removed (`helm uninstall`). It makes no changes, and uses its own
// ServiceAccount instead of the manager's.
package check
