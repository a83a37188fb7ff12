// Package judge decides what is wrong with an installation, based on what package collect has read.
// It is pure. Each check returns findings: none if the facts were not read, and an OK if there is
// no problem.
package judge
