package mirror

import "net/netip"

// Member contains the properties of a member that translation depends on.
type Member struct {
	// Registration is the name of the member's ClusterRegistration.
	Registration string
	// ClusterID is the member's cluster ID.
	ClusterID string
	// NodeName is the name of the member's virtual node.
	NodeName string
	// HostID is the cluster ID of the host.
	HostID string
	// PodCIDRs are the ranges of the Pod addresses that root Pods show. If PodCIDRs is empty, root
	// Pods show no addresses.
	PodCIDRs []netip.Prefix
	// LoosenPodSecurity reports whether the member's admin allows host Pod Security labels that are
	// weaker than the member's default.
	LoosenPodSecurity bool
	// Leaving means that the registration is being deleted. A link of a leaving member creates no
	// leaf Pods.
	Leaving bool
}
