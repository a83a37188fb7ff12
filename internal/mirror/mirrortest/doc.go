// Package mirrortest provides roots, members and filled objects for tests of package mirror and
// its subpackages.
package mirrortest
