// Package mirror defines how an object of one cluster is represented in the other. It contains the
// types that its subpackages share: the member, origin stamps, names, namespaces, and refusals. All
// of these packages are pure: they have no client, no clock and no log, never modify their
// arguments, and return the same result for the same arguments.
//
// Its part datasource reads the data source of a claim: another claim, a snapshot, or an object that
// only a populator supports. It is pure.
//
// Xylem records the source on the root claim (DataSourceRecord): the member that has it, and its UID. A claim
// refers to its source by name, and a user may delete the source and create another one with that
// name. The record keeps Xylem from copying the new one. The leaf claim records the UID too.
//
// A claim with a source must never get an empty disk. Before Xylem uses the volume, SameDataSource compares
// the leaf claim's source with the root's.
//
// Its part sanitize makes a member's data safe for the host: plain text of limited length, short
// lists, no quantities that are negative or out of range, and only valid addresses of Pods and nodes.
// It does not change what an honest member reports. It is pure.
package mirror
