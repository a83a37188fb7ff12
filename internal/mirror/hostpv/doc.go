// Package hostpv translates a leaf PV to the host PV that mirrors it, makes the host PVs
// that are promises of volumes to come, and says which leaf PV a host PV represents. It is
// pure.
package hostpv
