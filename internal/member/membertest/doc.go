// Package membertest provides connections, tokens and kubeconfigs for tests of package member
// and related packages.
package membertest
