// Package manager wires the manager together: scheme, caches, the fleet of
// members, and the controllers of the host and of each link. There is no logic
// here.
package manager
