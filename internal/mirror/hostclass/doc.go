// Package hostclass reads the host's StorageClasses: whether a class is Xylem's, and its
// parameters. It is pure.
package hostclass
