// Package hostpv translates a leaf PV to the host PV that mirrors it, builds promises, and finds
// the leaf PV that a host PV represents. It is pure.
package hostpv
