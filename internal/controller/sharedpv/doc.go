// Package sharedpv implements the shared_pv controller. For each host PV of a shared volume, it
// removes the member's copy once the host's claim no longer has the volume, and then removes the
// member's finalizer from the host PV. If somebody changes the reclaim policy of a copy's PV, it sets
// Retain again. root_pod creates copies. Package sharing contains the decisions.
package sharedpv
