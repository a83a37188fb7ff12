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
	// Classes are the registration's exact rules, host class to member class.
	Classes map[string]string
	// ClassPrefix is what the names of host classes have before the member class's
	// own; empty for none.
	ClassPrefix string
	// Namespaces admit the host's namespaces to the member.
	Namespaces NamespacePatterns
	// LoosenPodSecurity: the member's admin lets Pod Security labels of the host loosen
	// what the member's namespaces require.
	LoosenPodSecurity bool
	// Adopt are the leaf volumes that an admin lets claims have by name; see Adoptable.
	Adopt []string
}
