// Package call reads the kubelet's paths and queries that the host's API server sends, and
// translates them to the member's API. It holds all names to what Kubernetes allows.
package call
