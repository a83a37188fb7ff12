// Package build builds a tree from the gathered objects. It is pure. A node is one object with
// its state, its details, and its relevant conditions and events.
package build
