package doctor

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/cli/inspect"
)

// CheckDomain is the name of this check.
const CheckDomain Check = "Domain"

var (
	domainCheck = checkOf[*Facts]{name: CheckDomain, read: func(ctx context.Context, r *inspect.Reader, f *Facts) {
		f.Host.Domain = readDomain(ctx, r)
	}, judge: infallible(func(*Facts) []Finding { return nil })}
	memberDomainCheck = checkOf[*Member]{name: CheckDomain, read: func(ctx context.Context, r *inspect.Reader, m *Member) {
		if m.Own { // the registration's account may not read ConfigMaps
			m.Domain = readDomain(ctx, r)
		}
	}, judge: infallible(judgeDomain)}
)

// clusterZone matches the plugin of CoreDNS that serves the cluster's names, with the cluster domain.
var clusterZone = regexp.MustCompile(`(?m)^[ \t]*kubernetes[ \t]+([a-z0-9][a-z0-9.-]*)`)

// readDomain returns the cluster domain from the configuration of CoreDNS, or "" if it is unknown: no API shows the cluster
// domain, not every cluster keeps this ConfigMap, and not every user may read it.
func readDomain(ctx context.Context, r *inspect.Reader) string {
	var config corev1.ConfigMap
	if err := r.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "coredns"}, &config); err != nil {
		return ""
	}
	return domainOf(config.Data["Corefile"])
}

func domainOf(corefile string) string {
	found := clusterZone.FindStringSubmatch(corefile)
	if found == nil {
		return ""
	}
	return inspect.Plain(strings.TrimSuffix(found[1], "."))
}

// judgeDomain compares a member's cluster domain with the host's.
func judgeDomain(m *Member) []Finding {
	host := m.host.Domain
	switch {
	case host == "" || m.Domain == "":
		return nil
	case host == m.Domain:
		return []Finding{passed("the member has the host's cluster domain, %s", host)}
	}
	return []Finding{problem(Warning, fmt.Sprintf("the member's cluster domain is %s, and the host's is %s, so names such as db.shop.svc.%[2]s do not resolve in the member's Pods", m.Domain, host),
		"In Pods that may run in the member, use names without the domain, such as db.shop.svc.")}
}
