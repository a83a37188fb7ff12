// Package shipped returns what this version of Xylem installs in a host and in members, and
// compares an installation with it. It is pure.
package shipped
