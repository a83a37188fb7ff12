// Package manager wires the manager together: scheme, caches, the fleet of members, and the
// controllers of the host and of each link. It contains no logic.
package manager
