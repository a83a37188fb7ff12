// Package build makes the tree of what was gathered. It is pure: a node is one object with
// its state, its details, and those of its conditions and events that matter.
package build
