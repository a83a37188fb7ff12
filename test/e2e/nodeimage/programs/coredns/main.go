// Command coredns is CoreDNS with the plugins of kubeadm's Corefile only, which
// saves compiling the clients of every cloud's DNS.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/loop"
	_ "github.com/coredns/coredns/plugin/metrics"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
)

func main() {
	// The order in which a query passes through them, as in CoreDNS' own list.
	dnsserver.Directives = []string{
		"reload", "health", "ready", "prometheus", "errors", "log", "cache", "loadbalance", "loop", "kubernetes", "forward",
	}
	coremain.Run()
}
