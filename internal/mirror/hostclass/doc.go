// Package hostclass reads the host's StorageClasses. It determines which of them Xylem provisions
// volumes for, and their parameters. It is pure.
package hostclass
