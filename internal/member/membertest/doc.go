// Package membertest provides connections, tokens and kubeconfigs for the tests of package member
// and related packages.
package membertest
