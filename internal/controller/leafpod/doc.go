// Package leafpod copies the status of a leaf Pod to its root after the host has bound the
// root. It fails roots whose leaf is gone: it never silently re-creates a leaf that vanished
// or was evicted. It writes the root's status, except for the Pushed condition and the fields
// of the host's scheduler and controllers.
//
// The controller keeps the final state of a leaf in memory, because the leaf may be gone
// before its root is reconciled. If the manager restarts in between, the root is reported as
// Failed.
package leafpod
