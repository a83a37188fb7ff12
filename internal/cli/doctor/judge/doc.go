// Package judge decides what is wrong with an installation, from what package facts has read. It
// is pure. Each check returns what it found: nothing if the facts were not read, and an OK if all
// is well.
package judge
