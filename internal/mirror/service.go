package mirror

import (
	"net/netip"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/fields"
)

// maxSliceEndpoints is the maximum number of endpoints in a leaf EndpointSlice, which is also the API's limit.
const maxSliceEndpoints = 1000

// ServiceFieldTable contains the decisions on the fields of a Service.
var ServiceFieldTable = fields.Table{
	Title:      "Service spec (host to member)",
	PathPrefix: "spec",
	StructType: reflect.TypeFor[corev1.ServiceSpec](),
	Fields: []fields.Field{
		{Path: "ports[].name", Decision: fields.Keep, Why: "clients use the same names and ports"},
		{Path: "ports[].protocol", Decision: fields.Keep, Why: "like name"},
		{Path: "ports[].appProtocol", Decision: fields.Keep, Why: "like name"},
		{Path: "ports[].port", Decision: fields.Keep, Why: "like name"},
		{Path: "ports[].targetPort", Decision: fields.Keep, Why: "like name"},
		{Path: "ports[].nodePort", Decision: fields.Drop, Why: "the member's nodes belong to the member"},
		{Path: "selector", Decision: fields.Keep, Why: "leaf Pods have their roots' labels, so the member's own controllers find the endpoints, also while Xylem is down"},
		{Path: "clusterIP", Decision: fields.Translate, Why: "a headless Service stays headless; any other address is the member's to assign"},
		{Path: "clusterIPs", Decision: fields.Drop, Why: "the member assigns them"},
		{Path: "type", Decision: fields.Translate, Why: "always ClusterIP: NodePort and LoadBalancer would open the member to networks outside"},
		{Path: "externalIPs", Decision: fields.Drop, Why: "they would redirect the member's own traffic to these addresses"},
		{Path: "sessionAffinity", Decision: fields.Keep, Why: "the member's proxies apply it"},
		{Path: "sessionAffinityConfig", Decision: fields.Keep, Why: "like sessionAffinity"},
		{Path: "loadBalancerIP", Decision: fields.Drop, Why: "the load balancer is the host's"},
		{Path: "loadBalancerSourceRanges", Decision: fields.Drop, Why: "the load balancer is the host's"},
		{Path: "loadBalancerClass", Decision: fields.Drop, Why: "the load balancer is the host's"},
		{Path: "allocateLoadBalancerNodePorts", Decision: fields.Drop, Why: "the load balancer is the host's"},
		{Path: "externalName", Decision: fields.Refuse, Why: "a tenant of the host could point a proxy of the member to any address, by a DNS name of their own"},
		{Path: "externalTrafficPolicy", Decision: fields.Drop, Why: "it concerns only node ports and load balancers"},
		{Path: "healthCheckNodePort", Decision: fields.Drop, Why: "it concerns only load balancers"},
		{Path: "publishNotReadyAddresses", Decision: fields.Keep, Why: "databases find their peers with it before they are ready"},
		{Path: "ipFamilies", Decision: fields.Drop, Why: "the member has its own address families"},
		{Path: "ipFamilyPolicy", Decision: fields.Translate, Why: "RequireDualStack becomes PreferDualStack, because the member may have one family"},
		{Path: "internalTrafficPolicy", Decision: fields.Keep, Why: "the member's proxies apply it"},
		{Path: "trafficDistribution", Decision: fields.Translate, Why: "PreferClose, which every version knows; it is only a preference"},
	},
}

// EndpointFieldTable contains the decisions on the fields of an endpoint in an EndpointSlice.
var EndpointFieldTable = fields.Table{
	Title:      "EndpointSlice endpoints (host to member)",
	PathPrefix: "endpoints[]",
	StructType: reflect.TypeFor[discoveryv1.Endpoint](),
	Fields: []fields.Field{
		{Path: "addresses", Decision: fields.Translate, Why: "only those in spec.services.reachable, and none that are special, such as loopback and link-local addresses"},
		{Path: "conditions", Decision: fields.Keep, Why: "ready, serving and terminating mean the same"},
		{Path: "hostname", Decision: fields.Keep, Why: "gives the Pods of a headless Service their names"},
		{Path: "targetRef", Decision: fields.Drop, Why: "the Pod is not in the member"},
		{Path: "deprecatedTopology", Decision: fields.Drop, Why: "describes another cluster"},
		{Path: "nodeName", Decision: fields.Drop, Why: "the node is not in the member"},
		{Path: "zone", Decision: fields.Drop, Why: "describes another cluster"},
		{Path: "hints", Decision: fields.Drop, Why: "describes another cluster"},
	},
}

// TranslateService returns the leaf of a Service, including its origin. It has no other labels and annotations,
// because these configure load balancers, DNS and proxies.
func TranslateService(root *corev1.Service, m Member) (*corev1.Service, *Refusal) {
	if root.Spec.Type == corev1.ServiceTypeExternalName || root.Spec.ExternalName != "" {
		return nil, NewRefusal(v1alpha1.ReasonEndpointsInMember, "Xylem does not create the Service in member %q, because of spec.externalName: a tenant of the host could point the member's own proxies to any address with it. Use the external name itself in Pods, or ask the member's admin to create the Service there", m.Registration)
	}
	root = root.DeepCopy()
	leaf := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: root.Namespace, Name: root.Name},
		Spec: corev1.ServiceSpec{
			Type:                     corev1.ServiceTypeClusterIP,
			Selector:                 root.Spec.Selector,
			Ports:                    root.Spec.Ports,
			PublishNotReadyAddresses: root.Spec.PublishNotReadyAddresses,
			SessionAffinity:          root.Spec.SessionAffinity,
			SessionAffinityConfig:    root.Spec.SessionAffinityConfig,
			InternalTrafficPolicy:    root.Spec.InternalTrafficPolicy,
			IPFamilyPolicy:           leafFamilyPolicy(root),
		},
	}
	for i := range leaf.Spec.Ports {
		leaf.Spec.Ports[i].NodePort = 0
	}
	if IsHeadlessService(root) {
		leaf.Spec.ClusterIP = corev1.ClusterIPNone
	}
	if root.Spec.TrafficDistribution != nil {
		leaf.Spec.TrafficDistribution = ptr.To(corev1.ServiceTrafficDistributionPreferClose)
	}
	OriginForRoot(m.HostID, root).StampLeaf(leaf)
	return leaf, nil
}

// IsHeadlessService reports whether a Service has no address of its own.
func IsHeadlessService(service *corev1.Service) bool {
	return service.Spec.ClusterIP == corev1.ClusterIPNone
}

// leafFamilyPolicy returns nil if the API server sets a policy by default that depends on the cluster.
func leafFamilyPolicy(root *corev1.Service) *corev1.IPFamilyPolicy {
	switch ptr.Deref(root.Spec.IPFamilyPolicy, "") {
	case corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack:
		return ptr.To(corev1.IPFamilyPolicyPreferDualStack)
	case corev1.IPFamilyPolicySingleStack:
		return ptr.To(corev1.IPFamilyPolicySingleStack)
	}
	return nil
}

// UpdateLeafService returns a leaf Service with the desired spec and stamp. The member's allocations stay.
func UpdateLeafService(leaf, want *corev1.Service) *corev1.Service {
	after := leaf.DeepCopy()
	is, to := &after.Spec, want.DeepCopy().Spec
	is.Type, is.Selector, is.Ports = to.Type, to.Selector, to.Ports
	is.PublishNotReadyAddresses, is.SessionAffinity, is.SessionAffinityConfig = to.PublishNotReadyAddresses, to.SessionAffinity, to.SessionAffinityConfig
	is.InternalTrafficPolicy, is.TrafficDistribution = to.InternalTrafficPolicy, to.TrafficDistribution
	is.ExternalIPs = nil
	if to.IPFamilyPolicy != nil {
		is.IPFamilyPolicy = to.IPFamilyPolicy
	}
	stampLike(after, want)
	return after
}

// IsLeafServiceCurrent reports whether UpdateLeafService changes nothing.
func IsLeafServiceCurrent(leaf, want *corev1.Service) bool {
	after := UpdateLeafService(leaf, want)
	return equality.Semantic.DeepEqual(leaf.Spec, after.Spec) && equality.Semantic.DeepEqual(leaf.Annotations, after.Annotations)
}

// stampLike sets the stamp of want on a leaf that already has a stamp for the same name.
func stampLike(leaf, want metav1.Object) {
	origin, _ := LeafOrigin(want)
	origin.StampLeaf(leaf)
}

// IsEndpointInMember reports whether an endpoint in the host is a Pod of the member, which the member's own
// controllers add to the Service.
func IsEndpointInMember(endpoint *discoveryv1.Endpoint, m Member) bool {
	return m.HasNode(ptr.Deref(endpoint.NodeName, ""))
}

// TranslateEndpoint returns an endpoint for the member. It has no addresses if the member's Pods can reach none.
func TranslateEndpoint(endpoint *discoveryv1.Endpoint, m Member) discoveryv1.Endpoint {
	leaf := discoveryv1.Endpoint{Conditions: *endpoint.Conditions.DeepCopy(), Hostname: fields.ClonePointer(endpoint.Hostname)}
	for _, address := range endpoint.Addresses {
		if usual := CanonicalAddress(address); usual != "" && IsAddressInPrefixes(netip.MustParseAddr(usual), m.Reachable) {
			leaf.Addresses = append(leaf.Addresses, usual)
		}
	}
	return leaf
}

// TranslateEndpointSlice returns the leaf of an EndpointSlice, including its origin, with the endpoints that are
// not in the member but that its Pods can reach. It returns nil if there are none.
func TranslateEndpointSlice(root *discoveryv1.EndpointSlice, m Member) *discoveryv1.EndpointSlice {
	if root.AddressType != discoveryv1.AddressTypeIPv4 && root.AddressType != discoveryv1.AddressTypeIPv6 {
		return nil
	}
	leaf := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: root.Namespace, Name: root.Name, Labels: map[string]string{
			discoveryv1.LabelServiceName: root.Labels[discoveryv1.LabelServiceName],
			discoveryv1.LabelManagedBy:   v1alpha1.EndpointSliceManager,
		}},
		AddressType: root.AddressType,
		Ports:       root.DeepCopy().Ports,
	}
	if _, headless := root.Labels[corev1.IsHeadlessService]; headless {
		leaf.Labels[corev1.IsHeadlessService] = ""
	}
	for i := range root.Endpoints {
		if len(leaf.Endpoints) == maxSliceEndpoints || IsEndpointInMember(&root.Endpoints[i], m) {
			continue
		}
		if endpoint := TranslateEndpoint(&root.Endpoints[i], m); len(endpoint.Addresses) > 0 {
			leaf.Endpoints = append(leaf.Endpoints, endpoint)
		}
	}
	if len(leaf.Endpoints) == 0 {
		return nil
	}
	OriginForRoot(m.HostID, root).StampLeaf(leaf)
	return leaf
}

// UpdateLeafEndpointSlice returns a leaf EndpointSlice with the desired endpoints, labels and stamp.
func UpdateLeafEndpointSlice(leaf, want *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	after := leaf.DeepCopy()
	want = want.DeepCopy()
	after.Endpoints, after.Ports = want.Endpoints, want.Ports
	after.Labels = fields.MergeStringMaps(after.Labels, want.Labels)
	if _, headless := want.Labels[corev1.IsHeadlessService]; !headless {
		delete(after.Labels, corev1.IsHeadlessService)
	}
	stampLike(after, want)
	return after
}

// IsLeafEndpointSliceCurrent reports whether UpdateLeafEndpointSlice changes nothing.
func IsLeafEndpointSliceCurrent(leaf, want *discoveryv1.EndpointSlice) bool {
	after := UpdateLeafEndpointSlice(leaf, want)
	return equality.Semantic.DeepEqual(leaf.Endpoints, after.Endpoints) && equality.Semantic.DeepEqual(leaf.Ports, after.Ports) &&
		equality.Semantic.DeepEqual(leaf.Labels, after.Labels) && equality.Semantic.DeepEqual(leaf.Annotations, after.Annotations)
}
