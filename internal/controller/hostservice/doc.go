// Package hostservice warns about Services of the host that select Pods in members: the
// controller host_service, on the leader, one request for each Service.
//
// Xylem connects no networks. A Service whose Pods run in a member has no endpoints, as long
// as the registration's spec.node.podCIDRs is empty, or endpoints that only work where the
// host's network routes to the member. Neither shows on the Service. So each Service gets one
// event, for as long as the manager runs, that says what to read and what to change.
package hostservice
