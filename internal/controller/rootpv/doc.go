// Package rootpv carries the end of a host PV down: when its claim is gone, it deletes the
// leaf claim and, with policy Delete, the volume, on evidence only (I2). It keeps the host
// PV by a finalizer until then. It deletes leaf claims of bound volumes, sets leaf PVs to
// Delete, and removes host PVs' finalizers. INVARIANTS.md has the safety argument; package
// promise has the steps of WhenUnused.
package rootpv
