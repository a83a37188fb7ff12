package mirror

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

var reachingAll = Member{Registration: "cluster38", NodeName: "kosmos-cluster38", HostID: "host", Reachable: AllPodCIDRs}

func TestTranslateService(t *testing.T) {
	root := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "uid", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.0.0.7", ClusterIPs: []string{"10.0.0.7"}, Selector: map[string]string{"app": "db"},
			Ports:          []corev1.ServicePort{{Name: "db", Port: 5432, NodePort: 30000}},
			IPFamilyPolicy: new(corev1.IPFamilyPolicyRequireDualStack), TrafficDistribution: new("PreferSameNode"),
			ExternalIPs: []string{"192.0.2.1"}, LoadBalancerClass: new("lb"),
		},
	}
	stamp := Origin{HostID: "host", Root: types.NamespacedName{Namespace: "shop", Name: "db"}, UID: "uid"}
	want := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", Labels: stamp.StampLabels(), Annotations: stamp.StampAnnotations()},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: map[string]string{"app": "db"}, Ports: []corev1.ServicePort{{Name: "db", Port: 5432}},
			IPFamilyPolicy: new(corev1.IPFamilyPolicyPreferDualStack), TrafficDistribution: new(corev1.ServiceTrafficDistributionPreferClose),
		},
	}
	got, refusal := TranslateService(root, reachingAll)
	if refusal != nil {
		t.Fatal(refusal)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if root.Spec.Ports[0].NodePort == 0 {
		t.Error("the root was changed")
	}
	leaf := got.DeepCopy() // as the member's API server stores it
	leaf.Spec.ClusterIP, leaf.Spec.ClusterIPs, leaf.Spec.IPFamilies = "10.1.0.3", []string{"10.1.0.3"}, []corev1.IPFamily{corev1.IPv4Protocol}
	if !IsLeafServiceCurrent(leaf, got) {
		t.Errorf("a leaf differs from its own root:\n%s", cmp.Diff(leaf, UpdateLeafService(leaf, got)))
	}
	for name, change := range map[string]func(*corev1.Service){
		"selector": func(s *corev1.Service) { s.Spec.Selector = nil },
		"port":     func(s *corev1.Service) { s.Spec.Ports[0].Port = 1 },
		"new root": func(s *corev1.Service) { s.Annotations[v1alpha1.AnnotationRootUID] = "newer" },
	} {
		changed := got.DeepCopy()
		change(changed)
		if after := UpdateLeafService(leaf, changed); IsLeafServiceCurrent(leaf, changed) || after.Spec.ClusterIP != leaf.Spec.ClusterIP {
			t.Errorf("%s: the leaf is not updated, or loses its address", name)
		}
	}
}

func TestTranslateEndpointSlice(t *testing.T) {
	endpoint := func(node string, addresses ...string) discoveryv1.Endpoint {
		e := discoveryv1.Endpoint{Addresses: addresses, Hostname: new("db-0"), Zone: new("z"), TargetRef: &corev1.ObjectReference{Name: "db-0"},
			Conditions: discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)}}
		if node != "" {
			e.NodeName = &node
		}
		return e
	}
	some := reachingAll
	some.Reachable = parsePrefixes("10.8.0.0/16", "2001:db8::/32")
	for name, tc := range map[string]struct {
		kind      discoveryv1.AddressType
		member    Member
		endpoints []discoveryv1.Endpoint
		want      []string
	}{
		"the member's own Pods are left to its controllers": {discoveryv1.AddressTypeIPv4, reachingAll, []discoveryv1.Endpoint{endpoint("kosmos-cluster38", "10.8.0.1"), endpoint("worker", "10.8.0.2")}, []string{"10.8.0.2"}},
		"only reachable addresses":                          {discoveryv1.AddressTypeIPv4, some, []discoveryv1.Endpoint{endpoint("", "10.9.0.1"), endpoint("", "10.8.0.2")}, []string{"10.8.0.2"}},
		"IPv6":                                              {discoveryv1.AddressTypeIPv6, some, []discoveryv1.Endpoint{endpoint("", "2001:db8::2"), endpoint("", "2001:db9::2")}, []string{"2001:db8::2"}},
		"no special addresses":                              {discoveryv1.AddressTypeIPv4, reachingAll, []discoveryv1.Endpoint{endpoint("", "169.254.169.254"), endpoint("", "127.0.0.1"), endpoint("", "100.100.100.200")}, nil},
		"no special addresses for IPv6":                     {discoveryv1.AddressTypeIPv6, reachingAll, []discoveryv1.Endpoint{endpoint("", "fd00:ec2::254"), endpoint("", "64:ff9b::a9fe:a9fe"), endpoint("", "::1")}, nil},
		"no names":                                          {discoveryv1.AddressTypeFQDN, reachingAll, []discoveryv1.Endpoint{endpoint("", "10.8.0.2")}, nil},
		"no ranges":                                         {discoveryv1.AddressTypeIPv4, Member{}, []discoveryv1.Endpoint{endpoint("", "10.8.0.2")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			root := &discoveryv1.EndpointSlice{
				ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: "db-1", UID: "uid", Labels: map[string]string{discoveryv1.LabelServiceName: "db", corev1.IsHeadlessService: "", "a": "b", discoveryv1.LabelManagedBy: "other"}},
				AddressType: tc.kind, Endpoints: tc.endpoints, Ports: []discoveryv1.EndpointPort{{Name: new("db"), Port: new(int32(5432))}},
			}
			got := TranslateEndpointSlice(root, tc.member)
			if got == nil || tc.want == nil {
				if (got == nil) != (tc.want == nil) {
					t.Fatalf("got %v, want addresses %v", got, tc.want)
				}
				return
			}
			stamp := Origin{HostID: "host", Root: types.NamespacedName{Namespace: "shop", Name: "db-1"}, UID: "uid"}
			labels := stamp.StampLabels()
			labels[discoveryv1.LabelServiceName], labels[discoveryv1.LabelManagedBy], labels[corev1.IsHeadlessService] = "db", v1alpha1.EndpointSliceManager, ""
			want := &discoveryv1.EndpointSlice{
				ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: "db-1", Labels: labels, Annotations: stamp.StampAnnotations()},
				AddressType: tc.kind, Ports: root.Ports,
				Endpoints: []discoveryv1.Endpoint{{Addresses: tc.want, Hostname: new("db-0"), Conditions: tc.endpoints[0].Conditions}},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if !IsLeafEndpointSliceCurrent(got, want) {
				t.Error("a leaf differs from its own root")
			}
		})
	}
}

// The member's policy rejects the same special addresses.
func TestMemberPolicyHasSpecialRanges(t *testing.T) {
	policy, err := os.ReadFile("../../config/member/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	expression := regexp.MustCompile(`(?s)- name: specialRanges\n.*?map\(c, cidr\(c\)\)`).Find(policy)
	ranges := map[string]bool{}
	for _, cidr := range regexp.MustCompile(`'([0-9a-f.:]+/[0-9]+)'`).FindAllSubmatch(expression, -1) {
		ranges[string(cidr[1])] = true
	}
	for _, special := range specialRanges {
		if !ranges[special.String()] {
			t.Errorf("config/member/policy.yaml lacks %s", special)
		}
		delete(ranges, special.String())
	}
	if len(ranges) > 0 {
		t.Errorf("config/member/policy.yaml has other ranges: %v", ranges)
	}
}
