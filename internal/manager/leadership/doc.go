// Package leadership implements the lock for leader election, which also fences the process:
// after a process was frozen for longer than its Lease lasts, it writes nothing to the host.
package leadership
