// Package leafpod carries a leaf Pod's status up to its root, once the host has bound the
// root, and ends roots whose leaf is gone: a leaf that vanished or was evicted is never
// silently run again. It writes the root's status, except the Pushed condition and what the
// host's scheduler and controllers report there.
//
// How a leaf ended is remembered from its last event, since a leaf may be gone before its
// root is reconciled. A manager that is restarted in that instant reports such a Pod as
// Failed.
package leafpod
