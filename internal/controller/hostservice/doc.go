// Package hostservice warns about Services in the host that select Pods in members. Its
// controller host_service runs on the leader and reconciles one Service for each request.
//
// Xylem does not connect networks. If a Service's Pods run in a member and the registration's
// spec.node.podCIDRs is empty, the Service has no endpoints. Otherwise, its endpoints work
// only where the host's network routes to the member. Neither is visible on the Service, so
// the controller emits one event that names the relevant documentation and what to change. It
// emits the event again after a restart of the manager.
package hostservice
