// Package hostclass reads the host's StorageClasses: whether Xylem provisions a class, and its
// parameters. It is pure.
package hostclass
