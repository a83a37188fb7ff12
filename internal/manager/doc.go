// Package manager wires the manager together: scheme, caches, the fleet of members, and the
// controllers of the host and of each link. It contains no logic.
//
// Its part leadership implements the lock for leader election. The lock also fences the process: a
// process that was frozen for longer than its Lease duration writes nothing to the host.
//
// Its part options defines the manager's flags, with their defaults and validation.
package manager
