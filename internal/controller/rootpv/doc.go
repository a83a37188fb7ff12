// Package rootpv carries the end of a host PV down: when its claim is gone, the
// leaf claim goes, and, where the policy is Delete, the volume with it, on
// evidence only (I2). It holds the host PV by a finalizer until then.
//
// It deletes leaf claims of bound volumes, puts leaf PVs to Delete, and drops
// host PVs' finalizers.
package rootpv
