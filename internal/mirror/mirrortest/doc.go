// Package mirrortest provides roots, members, and objects with all fields set, for tests of package
// mirror and its subpackages.
package mirrortest
