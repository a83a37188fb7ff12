// Package mirrortest has roots, members and filled objects for the tests of mirror and the
// packages below it.
package mirrortest
