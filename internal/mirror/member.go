package mirror

import "net/netip"

// Member has the properties of a member that translation depends on.
type Member struct {
	// Registration is the name of its ClusterRegistration.
	Registration string
	// ClusterID of the member.
	ClusterID string
	// NodeName of its virtual node.
	NodeName string
	// HostID is the cluster ID of the host.
	HostID string
	// PodCIDRs contain the Pod addresses that root Pods show. Without any, root Pods show no
	// addresses.
	PodCIDRs []netip.Prefix
	// LoosenPodSecurity: the member's admin allows Pod Security labels of the host that are weaker
	// than the member's default.
	LoosenPodSecurity bool
}
