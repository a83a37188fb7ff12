package register

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
)

// podCIDRsLimit is the CRD's limit on the number of podCIDRs.
const podCIDRsLimit = 16

// podCIDRsOfNodes returns the ranges of the nodes' Pod addresses. If an address family has too many
// ranges, it returns a single range that contains them all.
func podCIDRsOfNodes(nodes []corev1.Node) []string {
	var four, six []netip.Prefix
	seen := map[netip.Prefix]bool{}
	for i := range nodes {
		for _, cidr := range nodes[i].Spec.PodCIDRs {
			prefix, err := netip.ParsePrefix(cidr)
			if err != nil || seen[prefix.Masked()] {
				continue
			}
			seen[prefix.Masked()] = true
			if prefix.Addr().Is4() {
				four = append(four, prefix.Masked())
			} else {
				six = append(six, prefix.Masked())
			}
		}
	}
	var ranges []string
	for _, family := range [][]netip.Prefix{four, six} {
		if len(family) > podCIDRsLimit/2 {
			family = []netip.Prefix{surroundingRange(family)}
		}
		for _, prefix := range family {
			ranges = append(ranges, prefix.String())
		}
	}
	return ranges
}

// surroundingRange returns the smallest range that contains all prefixes.
func surroundingRange(prefixes []netip.Prefix) netip.Prefix {
	whole := prefixes[0]
	for _, prefix := range prefixes[1:] {
		for !whole.Contains(prefix.Addr()) || whole.Bits() > prefix.Bits() {
			whole = netip.PrefixFrom(whole.Addr(), whole.Bits()-1).Masked()
		}
	}
	return whole
}
