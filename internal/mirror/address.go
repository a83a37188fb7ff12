package mirror

import (
	"net/netip"
	"slices"
)

// AllPodCIDRs are the prefixes that "all" in spec.node.podCIDRs represents.
var AllPodCIDRs = parsePrefixes("0.0.0.0/0", "::/0")

// MetadataServices are the addresses, except link-local ones, at which clouds serve machine
// credentials: AWS (all reserved addresses, including those of EKS), Google, Oracle, Alibaba,
// Azure, Scaleway and Akamai. The manager does not connect to them, the NetworkPolicy denies them,
// and root Pods do not show them.
var MetadataServices = parsePrefixes(
	"fd00:ec2::/32", "fd20:ce::254/128", "fd00:c1::a9fe:a9fe/128", "192.0.0.192/32", "100.100.100.200/32", "fd00:100::100:200/128",
	"168.63.129.16/32", "fd00:42::42/128", "fd00:a9fe:a9fe::1/128",
)

// specialRanges are ranges that cannot contain a reachable Pod or node, although a member may
// report one. The host's API server rejects EndpointSlices with some of these addresses, and others
// reach services near the client, such as a cloud's metadata service.
var specialRanges = append(parsePrefixes(
	"0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "2001::/32", "2002::/16", "fe80::/10", "fec0::/10", "ff00::/8",
), MetadataServices...)

func parsePrefixes(cidrs ...string) []netip.Prefix {
	parsed := make([]netip.Prefix, 0, len(cidrs))
	for _, cidr := range cidrs {
		parsed = append(parsed, netip.MustParsePrefix(cidr))
	}
	return parsed
}

// CanonicalAddress returns a reported address in canonical form. It returns "" if the address is
// invalid, has a zone, embeds an IPv4 address, or is in a special range.
func CanonicalAddress(reported string) string {
	parsed, err := netip.ParseAddr(reported)
	if err != nil || parsed.Zone() != "" || parsed.Is4In6() || IsAddressInPrefixes(parsed, specialRanges) {
		return ""
	}
	return parsed.String()
}

// IsAddressInPrefixes reports whether an address is in one of the prefixes.
func IsAddressInPrefixes(address netip.Addr, prefixes []netip.Prefix) bool {
	return slices.ContainsFunc(prefixes, func(prefix netip.Prefix) bool { return prefix.Contains(address) })
}

// IsIPv4Address reports whether a mirrored address is IPv4. API servers accept lists with at most one
// address of each family.
func IsIPv4Address(shown string) bool { return netip.MustParseAddr(shown).Is4() }
