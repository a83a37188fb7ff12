// Command coredns is CoreDNS with only the plugins of kubeadm's Corefile, so that the build does
// not include clients of cloud DNS services.
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
	// Plugins handle a query in this order, which is the order of CoreDNS' own list.
	dnsserver.Directives = []string{
		"reload", "health", "ready", "prometheus", "errors", "log", "cache", "loadbalance", "loop", "kubernetes", "forward",
	}
	coremain.Run()
}
