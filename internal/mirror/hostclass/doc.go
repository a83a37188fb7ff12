// Package hostclass interprets the host's StorageClasses: it determines whether Xylem provisions a
// class, and with which parameters. It is pure.
package hostclass
