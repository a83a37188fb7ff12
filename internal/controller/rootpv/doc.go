// Package rootpv propagates the end of a host PV to the member. After the host PV's claim was
// deleted, it deletes the leaf claim and, with policy Delete, the volume, only with evidence (I2).
// A finalizer keeps the host PV until then. It deletes leaf claims of bound volumes, sets leaf PVs
// to Delete, and removes host PVs' finalizers. INVARIANTS.md has the safety argument; package
// promise has the steps of WhenUnused.
package rootpv
