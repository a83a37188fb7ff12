// Package leafpvc carries the status of a leaf claim up to its root: capacity, the states
// of a resize, volume attributes, and their conditions. Phase and binding of the root are
// the host's PV controller's.
package leafpvc
