package mirror

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// AllPodCIDRs are the prefixes that the word "all" in spec.node.podCIDRs means.
var AllPodCIDRs = prefixes("0.0.0.0/0", "::/0")

// MetadataServices are the addresses at which clouds give a machine its credentials, the
// link-local ones aside: of AWS (all that it reserves, EKS' among it), Google, Oracle,
// Alibaba, Azure, Scaleway and Akamai. Neither does the manager connect to them, nor does
// the NetworkPolicy let it, nor do Pods show them.
var MetadataServices = prefixes(
	"fd00:ec2::/32", "fd20:ce::254/128", "fd00:c1::a9fe:a9fe/128", "192.0.0.192/32", "100.100.100.200/32", "fd00:100::100:200/128",
	"168.63.129.16/32", "fd00:42::42/128", "fd00:a9fe:a9fe::1/128",
)

// specialRanges hold no Pod and no node that others could reach, whatever a member
// reports: the host's API server rejects a whole EndpointSlice for one of them, and
// some lead to what is near the client, such as a cloud's metadata service.
var specialRanges = append(prefixes(
	"0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "2001::/32", "2002::/16", "fe80::/10", "fec0::/10", "ff00::/8",
), MetadataServices...)

func prefixes(cidrs ...string) []netip.Prefix {
	parsed := make([]netip.Prefix, 0, len(cidrs))
	for _, cidr := range cidrs {
		parsed = append(parsed, netip.MustParsePrefix(cidr))
	}
	return parsed
}

// address is what a member reports as one, in its usual form; empty if it is none,
// has a zone, represents an IPv4 address, or is in a special range.
func address(reported string) string {
	parsed, err := netip.ParseAddr(reported)
	if err != nil || parsed.Zone() != "" || parsed.Is4In6() || within(parsed, specialRanges) {
		return ""
	}
	return parsed.String()
}

func within(address netip.Addr, prefixes []netip.Prefix) bool {
	return slices.ContainsFunc(prefixes, func(prefix netip.Prefix) bool { return prefix.Contains(address) })
}

// podIPsOf a status; kubelets before dual stack report podIP alone.
func podIPsOf(status corev1.PodStatus) []corev1.PodIP {
	if len(status.PodIPs) == 0 && status.PodIP != "" {
		return []corev1.PodIP{{IP: status.PodIP}}
	}
	return status.PodIPs
}

// shownIPs are the Pod addresses inside the registration's podCIDRs.
func shownIPs(status corev1.PodStatus, cidrs []netip.Prefix) []corev1.PodIP {
	var shown []corev1.PodIP
	for _, ip := range podIPsOf(status) {
		if usual := address(ip.IP); usual != "" && within(netip.MustParseAddr(usual), cidrs) {
			shown = append(shown, corev1.PodIP{IP: usual})
		}
	}
	return firstOf(shown, func(ip corev1.PodIP) bool { return isIPv4(ip.IP) })
}

// shownHostIPs are the addresses of the member's node.
func shownHostIPs(status corev1.PodStatus) []corev1.HostIP {
	var shown []corev1.HostIP
	for _, ip := range status.HostIPs {
		if usual := address(ip.IP); usual != "" {
			shown = append(shown, corev1.HostIP{IP: usual})
		}
	}
	return firstOf(shown, func(ip corev1.HostIP) bool { return isIPv4(ip.IP) })
}

// isIPv4 tells the family of an address that is shown: API servers take a list with one of
// each at most.
func isIPv4(shown string) bool { return netip.MustParseAddr(shown).Is4() }

// HiddenPodIP is the first Pod address of a leaf that the root does not show
// although the registration has podCIDRs; empty if there is none. Where it has no
// podCIDRs, no address is expected.
func HiddenPodIP(leaf *corev1.Pod, m Member) string {
	if len(m.PodCIDRs) == 0 {
		return ""
	}
	for _, ip := range podIPsOf(leaf.Status) {
		if usual := address(ip.IP); usual == "" || !within(netip.MustParseAddr(usual), m.PodCIDRs) {
			return Plain(ip.IP, addressLimit)
		}
	}
	return ""
}

// addressLimit in bytes of an address in a message.
const addressLimit = 64
