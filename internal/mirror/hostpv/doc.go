// Package hostpv translates a leaf PV to the host PV that mirrors it, builds promises, and finds
// the leaf PV that a host PV represents. It is pure.
//
// Its part hostclass reads the host's StorageClasses. It determines which of them Xylem provisions
// volumes for, and their parameters. It is pure.
package hostpv
