// Package call parses the kubelet paths and queries that the host's API server sends, and
// translates them for the member's API. It rejects all names that Kubernetes does not allow.
package call
