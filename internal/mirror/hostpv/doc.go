// Package hostpv translates a leaf PV to the host PV that mirrors it, builds promises, and
// says which leaf PV a host PV represents. It is pure.
package hostpv
