package mirror

import "net/netip"

// Member is what translation has to know of a member.
type Member struct {
	// Registration is the name of its ClusterRegistration.
	Registration string
	// ClusterID of the member.
	ClusterID string
	// NodeName of its virtual node.
	NodeName string
	// HostID is the cluster ID of the host.
	HostID string
	// PodCIDRs hold the Pod addresses that the host shows; without any, it shows none.
	PodCIDRs []netip.Prefix
	// LoosenPodSecurity: the member's admin lets Pod Security labels of the host loosen
	// what the member's namespaces require.
	LoosenPodSecurity bool
}
