package register

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// podCIDRsLimit is the CRD's.
const podCIDRsLimit = 16

// adviseOnPodCIDRs reports that the host shows no Pod addresses of a member whose
// registration has no podCIDRs, and proposes those of the member's nodes. It sets
// nothing, since not every network publishes its ranges there.
func (r *run) adviseOnPodCIDRs(ctx context.Context, cr *v1alpha1.ClusterRegistration) {
	if len(cr.Spec.Node.PodCIDRs) > 0 {
		return
	}
	var nodes corev1.NodeList
	proposal := v1alpha1.AllPodCIDRs
	if err := r.member.List(ctx, &nodes); err == nil {
		if ranges := podCIDRsOf(nodes.Items); len(ranges) > 0 {
			proposal = strings.Join(ranges, ",")
		}
	}
	fmt.Fprintf(r.env.ErrOut, "note: the host shows no Pod IPs of this member. If the host's network reaches its Pods, run again with --%s=%s\n", flagPodCIDRs, proposal)
}

// podCIDRsOf are the ranges that nodes give their Pods addresses from: of each
// address family as the nodes have them, or, if these are too many, one that has
// all of them in it.
func podCIDRsOf(nodes []corev1.Node) []string {
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
