// Package hostclass reads the host's StorageClasses, and determines for which of them Xylem
// provisions volumes, and with which parameters. It is pure.
package hostclass
