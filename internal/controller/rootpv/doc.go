// Package rootpv propagates the release and deletion of a host PV to the member. Once the PV's
// claim is deleted, rootpv deletes the leaf claim and, if the policy is Delete, the volume. It
// destroys a volume only with evidence (I2), and a finalizer keeps the host PV until then. It
// deletes leaf claims of bound volumes, sets leaf PVs to Delete, and removes host PVs' finalizers.
// INVARIANTS.md contains the safety argument. Package promise documents the steps of WhenUnused. The
// controller shared_pv does the same for the copies of shared volumes, in each member that has one.
package rootpv
