// Package hostclass reads the host's StorageClasses: which are Xylem's, and what their
// parameters ask for. It is pure.
package hostclass
