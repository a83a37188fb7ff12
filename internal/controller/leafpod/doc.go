// Package leafpod carries a leaf Pod's status up to its root, once the host has
// bound the root, and ends roots that have nothing running for them any more:
// a leaf that vanished or was evicted is never silently run again.
//
// It writes the root's status, the Pushed condition and what the host's own
// scheduler and controllers say there excepted.
package leafpod
