// Package leadership implements the lock for leader election. The lock also fences the process: a
// process that was frozen for longer than its Lease duration writes nothing to the host.
package leadership
