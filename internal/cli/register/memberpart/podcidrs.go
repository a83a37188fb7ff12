package memberpart

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
)

// podCIDRsLimit is the CRD's.
const podCIDRsLimit = 16

// PodCIDRsOf are the ranges that nodes give their Pods addresses from: of each
// address family as the nodes have them, or, if these are too many, one that has
// all of them in it.
func PodCIDRsOf(nodes []corev1.Node) []string {
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
			family = []netip.Prefix{around(family)}
		}
		for _, prefix := range family {
			ranges = append(ranges, prefix.String())
		}
	}
	return ranges
}

// around is the smallest range that has all of them in it.
func around(prefixes []netip.Prefix) netip.Prefix {
	whole := prefixes[0]
	for _, prefix := range prefixes[1:] {
		for !whole.Contains(prefix.Addr()) || whole.Bits() > prefix.Bits() {
			whole = netip.PrefixFrom(whole.Addr(), whole.Bits()-1).Masked()
		}
	}
	return whole
}
