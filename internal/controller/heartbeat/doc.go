// Package heartbeat renews the Leases of the virtual nodes, on every replica of
// the manager, leader or not. A Lease speaks for Xylem being alive; whether the
// member is there, the controller virtual_node says in the Node's conditions.
// So it is renewed while the member is down as well, and a manager without a
// leader does not look like fifty dead clusters, whose Pods would be evicted.
//
// Replicas share the work without talking to each other: who finds a Lease that
// another renewed lately leaves it alone, so that one of them soon renews all
// the time and the others only look.
package heartbeat
