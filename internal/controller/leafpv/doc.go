// Package leafpv mirrors the volumes of leaf claims up: it stamps the leaf PV
// and puts its policy to Retain, in one patch, then makes the host PV that binds
// the root claim, and keeps that PV current. A volume that is used again, or
// whose leaf claim was lost, it points at its new leaf claim.
//
// It writes leaf PVs (stamp, the Retain, claimRef; the flip to Delete is
// root_pv's) and host PVs (their finalizer's end is root_pv's).
package leafpv
