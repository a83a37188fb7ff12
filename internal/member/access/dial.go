package access

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// refusedRanges lists address ranges that a kubeconfig must not point to, with the reasons.
// addressRefusal also rejects other addresses.
var refusedRanges = []struct {
	prefix netip.Prefix
	why    string
}{
	// Gateways translate addresses in these ranges to IPv4 addresses. Xylem cannot check the IPv4
	// address, because only the gateway can determine it, or because it is obfuscated.
	{netip.MustParsePrefix("64:ff9b:1::/48"), translatedAddress},
	{netip.MustParsePrefix("::ffff:0:0:0/96"), translatedAddress},
	{netip.MustParsePrefix("2001::/32"), translatedAddress},
	// Site-local addresses, which fd00::/8 replaced, and addresses that cannot be destinations.
	{netip.MustParsePrefix("fec0::/10"), "a deprecated site-local address"},
	{netip.MustParsePrefix("0.0.0.0/8"), "an address that cannot be a destination"},
	{netip.MustParsePrefix("240.0.0.0/4"), "a reserved or broadcast address"},
}

const translatedAddress = "an address that a gateway translates to an IPv4 address, which Xylem cannot check"

// embeddedPrefixes lists the prefixes of IPv6 addresses that contain an IPv4 address (NAT64, 6to4,
// IPv4-compatible), and the byte at which the IPv4 address begins.
var embeddedPrefixes = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},
	{netip.MustParsePrefix("2002::/16"), 2},
	{netip.MustParsePrefix("::/96"), 12},
}

// isISATAP reports whether an address has an ISATAP interface identifier (RFC 5214), regardless of
// its prefix.
func isISATAP(address netip.Addr) bool {
	raw := address.As16()
	return address.Is6() && raw[8]&^2 == 0 && raw[9] == 0 && raw[10] == 0x5e && raw[11] == 0xfe
}

// addressRefusal returns why the manager must not connect to an address, or "" if it may. The
// manager's network may reach addresses that the author of a kubeconfig cannot reach (I8).
func addressRefusal(address netip.Addr, allowLoopback bool) string {
	address = address.WithZone("").Unmap()
	switch {
	case !address.IsValid():
		return "an invalid address"
	case address.IsUnspecified():
		return "the unspecified address"
	case address.IsLoopback():
		if allowLoopback {
			return ""
		}
		return "a loopback address of the manager itself (allowed only with the manager's flag --allow-loopback-members)"
	case address.IsLinkLocalUnicast():
		return "a link-local address, where clouds serve machine credentials"
	case address.IsMulticast():
		return "a multicast address"
	case isISATAP(address):
		return translatedAddress
	}
	for _, prefix := range mirror.MetadataServices {
		if prefix.Contains(address) {
			return "a cloud metadata service"
		}
	}
	for _, r := range refusedRanges {
		if r.prefix.Contains(address) {
			return r.why
		}
	}
	for _, e := range embeddedPrefixes {
		if e.prefix.Contains(address) {
			raw := address.As16()
			return addressRefusal(netip.AddrFrom4([4]byte(raw[e.at:e.at+4])), allowLoopback)
		}
	}
	return ""
}

func newAddressProblem(address, why string) *ConnectionProblem {
	return ConnectionProblemf(v1alpha1.ReasonKubeconfigRefused, "the server in the kubeconfig points to %s, %s, to which the manager does not connect. Specify the address of the member's API server", address, why)
}

// newCheckedDialer connects only to addresses that addressRefusal allows. It checks the address at dial
// time, after DNS resolution, because a name can resolve differently between a check and its
// use.
func newCheckedDialer(allowLoopback bool) *net.Dialer {
	return &net.Dialer{
		Timeout: DialTimeout, KeepAlive: 30 * time.Second,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			host, err := netip.ParseAddrPort(address)
			if err != nil {
				return newAddressProblem(address, "an invalid address")
			}
			if why := addressRefusal(host.Addr(), allowLoopback); why != "" {
				return newAddressProblem(host.Addr().String(), why)
			}
			return nil
		},
	}
}

// DialSettings describes how a transport reaches a server: directly, or through the proxy that the manager's
// environment configures. The operator configures that proxy, so its address is not checked. The
// server behind it is checked only if it is an IP address, because the proxy resolves names.
type DialSettings struct {
	Proxy func(*http.Request) (*url.URL, error)
	Dial  func(context.Context, string, string) (net.Conn, error)
}

// DialSettingsFor returns how to reach a server: directly, or through one of the proxies. Errors are
// Problems.
func DialSettingsFor(server string, allowLoopback bool, proxies func(*http.Request) (*url.URL, error)) (DialSettings, error) {
	direct := DialSettings{
		Proxy: func(*http.Request) (*url.URL, error) { return nil, nil },
		Dial:  newCheckedDialer(allowLoopback).DialContext,
	}
	target, err := url.Parse(server)
	if err != nil {
		return DialSettings{}, ConnectionProblemf(v1alpha1.ReasonKubeconfigInvalid, "the server in the kubeconfig is not a plain https URL. Specify a URL such as https://member.example:6443")
	}
	proxy, err := proxies(&http.Request{URL: target})
	if err != nil {
		return DialSettings{}, fmt.Errorf("read the proxy settings from the manager's environment: %w", err)
	}
	if proxy == nil {
		return direct, nil
	}
	if literal, err := netip.ParseAddr(target.Hostname()); err == nil {
		if why := addressRefusal(literal, allowLoopback); why != "" {
			return DialSettings{}, newAddressProblem(literal.String(), why)
		}
	}
	return DialSettings{Proxy: http.ProxyURL(proxy), Dial: (&net.Dialer{Timeout: DialTimeout, KeepAlive: 30 * time.Second}).DialContext}, nil
}

// DialTimeout limits the time to establish a connection.
const DialTimeout = 5 * time.Second
