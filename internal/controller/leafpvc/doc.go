// Package leafpvc copies the status of a leaf claim to its root: capacity, the state of a
// resize, volume attributes, and their conditions. The host's PV controller owns the root's
// phase and binding.
package leafpvc
