// Package e2e tells the stories of Xylem from a user's side: install it, register
// members, use it, break it, upgrade it, take it away. On kind, Pods really run
// and write; on the control planes of test/controlplane the same stories run
// without kubelets, in less time. See README.md.
package e2e
