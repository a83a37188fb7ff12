// Package conditions computes the conditions of a registration and the lists in its status. It does
// no I/O.
package conditions
