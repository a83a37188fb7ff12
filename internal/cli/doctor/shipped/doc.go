// Package shipped knows what this version of Xylem installs in a host and in members, and how an
// installation differs from it. It is pure.
package shipped
