package mirror

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// Member contains the properties of a member that translation depends on.
type Member struct {
	// Registration is the name of the member's ClusterRegistration.
	Registration string
	// ClusterID is the member's cluster ID.
	ClusterID string
	// NodeName is the name of the member's virtual node. With spec.nodes, it is the last part of the names of
	// all of them, and usually no Node has it; see HasNode.
	NodeName string
	// NodeGroups are the rules in spec.nodes. If there is none, one virtual node represents the member.
	NodeGroups []v1alpha1.NodeGroup
	// HostID is the cluster ID of the host.
	HostID string
	// PodCIDRs are the ranges of the Pod addresses that root Pods show. If PodCIDRs is empty, root
	// Pods show no addresses.
	PodCIDRs []netip.Prefix
	// APIServer is how the member's Pods reach the host's API server. It is nil if they get no tokens.
	APIServer *APIServer
	// PriorityClasses maps the host's PriorityClasses to the member's, by name.
	PriorityClasses map[string]string
	// ReflectServices means that the host's Services exist in the member, too.
	ReflectServices bool
	// Reachable are the ranges of addresses outside the member that its Pods can reach.
	Reachable []netip.Prefix
	// LoosenPodSecurity reports whether the member's admin allows host Pod Security labels that are
	// weaker than the member's default.
	LoosenPodSecurity bool
	// HostShowsPodResources means that the status of a host's Pod has the resources of the Pod itself
	// (Kubernetes 1.36 and later, by default).
	HostShowsPodResources bool
	// Leaving means that the registration is being deleted. A link of a leaving member creates no
	// leaf Pods.
	Leaving bool
}

// HasNode reports whether a Node with this name represents the member, or a group of its nodes.
func (m Member) HasNode(name string) bool { return v1alpha1.IsNodeOfMember(name, m.NodeName) }

// APIServer is the address of the host's API server for Pods in a member, and the certificates with which they verify it.
type APIServer struct {
	Host, Port string
	// CABundle is PEM-encoded. If it is empty, Pods use their system's certificates.
	CABundle []byte
}

// APIServerOf returns the API server at an https URL, whose port defaults to 443.
func APIServerOf(address string, caBundle []byte) (*APIServer, error) {
	parsed, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, fmt.Errorf("parse the URL: %w", err)
	case parsed.Scheme != "https" || parsed.Hostname() == "":
		return nil, fmt.Errorf("%q does not have the form https://<host>[:<port>]", address)
	}
	return &APIServer{Host: parsed.Hostname(), Port: cmp.Or(parsed.Port(), "443"), CABundle: caBundle}, nil
}
