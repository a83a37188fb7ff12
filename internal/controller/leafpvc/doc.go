// Package leafpvc carries the status of a leaf claim up to its root: capacity,
// the states of a resize, volume attributes, and the conditions that go with
// them. Phase and binding of the root are the host's own PV controller's.
package leafpvc
