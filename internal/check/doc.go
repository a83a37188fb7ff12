// Package check implements the hooks of chart xylem, which check whether an installation works
// (`helm test`) and whether it may be removed (`helm uninstall`). The checks change nothing, and
// use their own ServiceAccounts instead of the manager's.
package check
