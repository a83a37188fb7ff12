// Package pvc translates a root claim to its leaf claim, and the leaf claim's status to
// the root's. It is pure.
package pvc
