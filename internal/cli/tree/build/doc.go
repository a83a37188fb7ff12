// Package build builds a tree from the gathered objects. It is pure. A node is one object with its
// state, details, and relevant conditions and events.
package build
