package access

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func TestRefusedAddress(t *testing.T) {
	for address, says := range map[string]string{
		"10.0.0.1": "", "192.168.1.1": "", "203.0.113.7": "", "2001:db8::1": "", "fd12:3456::1": "", "172.16.0.1": "",
		"64:ff9b::203.0.113.7": "", "2002:cb00:7107::1": "",

		"127.0.0.1": "loopback", "127.8.9.10": "loopback", "::1": "loopback", "::ffff:127.0.0.1": "loopback",
		"0.0.0.0": "unspecified", "::": "unspecified", "::ffff:0.0.0.0": "unspecified",
		"169.254.169.254": "link-local", "169.254.170.2": "link-local", "::ffff:169.254.169.254": "link-local",
		"fe80::1": "link-local", "fe80::1%eth0": "link-local",
		"64:ff9b::169.254.169.254": "link-local", "64:ff9b:1::169.254.169.254": "translates", "2002:a9fe:a9fe::": "link-local", "::169.254.169.254": "link-local",
		"64:ff9b::127.0.0.1": "loopback",
		"fd00:ec2::254":      "metadata", "fd20:ce::254": "metadata", "100.100.100.200": "metadata", "168.63.129.16": "metadata",
		"fd00:ec2::23": "metadata", "fd00:c1::a9fe:a9fe": "metadata", "192.0.0.192": "metadata",
		"fd00:42::42": "metadata", "fd00:a9fe:a9fe::1": "metadata", "fd00:100::100:200": "metadata",
		"64:ff9b:1:a9fe:a9:fe00::": "translates", "64:ff9b:1:1::a9fe:a9fe": "translates", "64:ff9b:1::203.0.113.7": "translates",
		"::ffff:0:169.254.169.254": "translates", "::ffff:0:10.0.0.1": "translates",
		"2001:0:a9fe:a9fe::": "translates", "2002:a9fe:a9fe::1": "link-local", "2002:7f00:1::1": "loopback", "2002:f000:1::": "reserved",
		"2001:db8::5efe:169.254.169.254": "translates", "2001:db8::200:5efe:10.0.0.1": "translates", "::5efe:169.254.169.254": "translates",
		"fe80::5efe:a9fe:a9fe": "link-local", "fec0::1": "site-local",
		"0.1.2.3": "cannot be a destination", "240.0.0.1": "reserved", "255.255.255.255": "broadcast", "64:ff9b::240.0.0.1": "reserved",
		"224.0.0.1": "multicast", "ff02::1": "multicast",

		"10.96.0.1": "", "2001:db8:0:0:100:5efe:a00:1": "", "2600:5efe::1": "",
	} {
		t.Run(address, func(t *testing.T) {
			why := addressRefusal(netip.MustParseAddr(address), false)
			if (why == "") != (says == "") || !strings.Contains(why, says) {
				t.Errorf("refused because of %q, want %q", why, says)
			}
			if allowed := addressRefusal(netip.MustParseAddr(address), true); (says == "loopback") != (why != "" && allowed == "") {
				t.Errorf("the address is refused because of %q although loopback is allowed", allowed)
			}
		})
	}
	if addressRefusal(netip.Addr{}, true) == "" {
		t.Error("an empty address is allowed")
	}
}

// If the manager's environment configures a proxy, the dialer connects to the proxy. It still
// checks the server's address.
func TestAddressesBehindAProxy(t *testing.T) {
	proxies := func(r *http.Request) (*url.URL, error) {
		if r.URL.Hostname() == "10.1.2.3" {
			return nil, nil //nolint:nilnil // as http.ProxyFromEnvironment
		}
		return url.Parse("http://127.0.0.1:1")
	}
	_, err := DialSettingsFor("https://169.254.169.254:6443", false, proxies)
	if p := (*ConnectionProblem)(nil); !errors.As(err, &p) || p.Reason != v1alpha1.ReasonKubeconfigRefused {
		t.Errorf("error is %v, want a Problem with reason KubeconfigRefused", err)
	}
	for server, proxied := range map[string]bool{"https://member.example.com": true, "https://203.0.113.7:6443": true, "https://10.1.2.3:6443": false} {
		got, err := DialSettingsFor(server, false, proxies)
		if err != nil {
			t.Fatal(err)
		}
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, server, http.NoBody)
		if proxy, err := got.Proxy(request); err != nil || (proxy != nil) != proxied {
			t.Errorf("%s: proxy is %v, error %v; want a proxy: %t", server, proxy, err, proxied)
		}
	}
}
