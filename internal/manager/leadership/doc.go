// Package leadership is the manager's lock of the leader election, which also fences its
// process: one that was frozen for longer than its lease lasts writes nothing to the host.
package leadership
