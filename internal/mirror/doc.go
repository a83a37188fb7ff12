// Package mirror defines how an object of one cluster is represented in the other. It contains the
// types that its subpackages share: the member, origin stamps, names, namespaces, and refusals. All
// of these packages are pure: they have no client, no clock and no log, never modify their
// arguments, and return the same result for the same arguments.
package mirror
