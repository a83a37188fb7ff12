// Package membertest provides connections, tokens and kubeconfigs, and measures kept memory, for the tests of package member
// and related packages.
package membertest
