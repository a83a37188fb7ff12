// Package heartbeat renews the Leases of the virtual nodes on every replica of the manager. A
// Lease shows that Xylem is alive, while virtual_node reports in the Node's conditions
// whether the member is. heartbeat therefore renews the Lease even while the member is down,
// and on replicas that are not the leader. Otherwise, a manager without a leader would look
// like an outage of every member, and the host would evict their Pods.
//
// Replicas share the work without communicating. A replica does not renew a Lease that another
// replica renewed recently. Before long, a single replica renews each Lease, and the others only
// check it.
package heartbeat
