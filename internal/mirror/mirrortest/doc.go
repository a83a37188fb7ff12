// Package mirrortest has roots, members and filled objects for the tests of mirror and of
// the packages beneath it.
package mirrortest
