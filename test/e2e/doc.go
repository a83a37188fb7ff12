// Package e2e tests Xylem from a user's point of view: install it, register members, use it,
// break it, upgrade it, remove it. On kind, Pods really run and write. On the control planes of
// test/controlplane, the same stories run without kubelets, and faster. See README.md.
package e2e
