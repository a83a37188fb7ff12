// Package membertest has connections, tokens and kubeconfigs for the tests of member and of
// the packages around it.
package membertest
