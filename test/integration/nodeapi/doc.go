// Package nodeapi accesses Pods on virtual nodes as users do: with the stock kubectl, through the
// host's API server, the manager, the member's API server, and KWOK as the member's kubelet. It
// also attacks the manager's endpoint.
package nodeapi
