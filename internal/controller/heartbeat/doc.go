// Package heartbeat renews the Leases of the virtual nodes, on every replica of the
// manager. A Lease shows that Xylem is alive; the controller virtual_node reports in the
// Node's conditions whether the member is. So heartbeat renews it while the member is down
// as well. Otherwise, a manager without a leader would look like fifty dead clusters, and
// their Pods would be evicted.
//
// Replicas share the work without communicating: a replica that finds a Lease that another
// renewed lately leaves it, so that soon one of them renews and the others only look.
package heartbeat
