package rootservice

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/placement"
)

var here = mirror.Member{Registration: "cluster38", NodeName: "kosmos-cluster38", HostID: "host", ReflectServices: true, Reachable: mirror.AllPodCIDRs}

func rootService(change ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "uid"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.0.0.1"}}
	for _, f := range change {
		f(s)
	}
	return s
}

func leafOf(root *corev1.Service) *corev1.Service {
	leaf, refusal := mirror.TranslateService(root, here)
	if refusal != nil {
		panic(refusal)
	}
	return leaf
}

func sliceNamed(name, address string) *discoveryv1.EndpointSlice {
	return mirror.TranslateEndpointSlice(&discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), Labels: map[string]string{discoveryv1.LabelServiceName: "db"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}}},
	}, here)
}

// described is a decision with the name of its object.
func described(d decision) string {
	name := reflect.TypeOf(d).Name()
	var object client.Object
	switch d := d.(type) {
	case createLeaf:
		object = d.leaf
	case waitForQuota:
		object = d.leaf
	case updateLeaf:
		object = d.after
	case deleteLeaf:
		object = d.leaf
	}
	if object == nil {
		return name
	}
	return name + " " + object.GetName()
}

func TestDecideServiceStep(t *testing.T) {
	now := metav1.Now()
	headless := func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone }
	for name, tc := range map[string]struct {
		change func(*observed)
		want   string
	}{
		"it is created":                                   {func(o *observed) { o.leaf = nil }, "createLeaf db"},
		"it is current":                                   {func(*observed) {}, "doNothing"},
		"the member does not allow it":                    {func(o *observed) { o.leaf, o.served = nil, false }, "doNothing"},
		"the member has a foreign Service":                {func(o *observed) { o.leaf, o.serviceNameTaken = nil, true }, "waitForName"},
		"a quota has rejected another Service":            {func(o *observed) { o.leaf, o.serviceQuota.rest = nil, time.Second }, "waitForQuota db"},
		"a quota has rejected another one, and it exists": {func(o *observed) { o.serviceQuota.rest = time.Second }, "doNothing"},
		"a quota has rejected another EndpointSlice": {func(o *observed) {
			o.sliceQuota.rest, o.wantSlices = time.Second, []*discoveryv1.EndpointSlice{sliceNamed("db-1", "10.8.0.1")}
		}, "waitForQuota db-1"},
		"the foreign Service uses our EndpointSlice": {func(o *observed) {
			o.leaf, o.serviceNameTaken, o.leafSlices = nil, true, []*discoveryv1.EndpointSlice{sliceNamed("db-1", "10.8.0.1")}
		}, "deleteLeaf db-1"},
		"the namespace is not the host's":          {func(o *observed) { o.leaf, o.memberNamespace.Labels = nil, nil }, "doNothing"},
		"the namespace is unused":                  {func(o *observed) { o.used, o.unused = false, time.Second }, "waitForUse"},
		"the namespace is unused and it is absent": {func(o *observed) { o.leaf, o.used, o.unused = nil, false, time.Second }, "doNothing"},
		"the namespace has been unused for long":   {func(o *observed) { o.used, o.unused = false, minUnusedTime }, "deleteLeaf db"},
		"its EndpointSlices go first": {func(o *observed) {
			o.used, o.unused, o.leafSlices = false, minUnusedTime, []*discoveryv1.EndpointSlice{sliceNamed("db-1", "10.8.0.1")}
		}, "deleteLeaf db-1"},
		"the member leaves":                {func(o *observed) { o.used, o.unused, o.member.Leaving = false, time.Second, true }, "deleteLeaf db"},
		"the root is gone":                 {func(o *observed) { o.root, o.want = nil, nil }, "deleteLeaf db"},
		"the root is gone, after restore":  {func(o *observed) { o.root, o.want, o.deletionSuspended = nil, nil, true }, "doNothing"},
		"it is being deleted":              {func(o *observed) { o.leaf.DeletionTimestamp = &now }, "doNothing"},
		"it becomes headless":              {func(o *observed) { o.want = leafOf(rootService(headless)) }, "replaceService"},
		"its selector changes":             {func(o *observed) { o.want.Spec.Selector = map[string]string{"app": "db"} }, "updateLeaf db"},
		"its root was created again":       {func(o *observed) { o.want = leafOf(rootService(func(s *corev1.Service) { s.UID = "newer" })) }, "updateLeaf db"},
		"an endpoint elsewhere appears":    {func(o *observed) { o.wantSlices = []*discoveryv1.EndpointSlice{sliceNamed("db-1", "10.8.0.1")} }, "createLeaf db-1"},
		"an endpoint elsewhere disappears": {func(o *observed) { o.leafSlices = []*discoveryv1.EndpointSlice{sliceNamed("db-1", "10.8.0.1")} }, "deleteLeaf db-1"},
		"an endpoint elsewhere changes": {func(o *observed) {
			o.leafSlices, o.wantSlices = []*discoveryv1.EndpointSlice{sliceNamed("db-1", "10.8.0.1")}, []*discoveryv1.EndpointSlice{sliceNamed("db-1", "10.8.0.2")}
		}, "updateLeaf db-1"},
		"the endpoints elsewhere are current": {func(o *observed) {
			o.leafSlices, o.wantSlices = []*discoveryv1.EndpointSlice{sliceNamed("db-1", "10.8.0.1")}, []*discoveryv1.EndpointSlice{sliceNamed("db-1", "10.8.0.1")}
		}, "doNothing"},
	} {
		t.Run(name, func(t *testing.T) {
			root := rootService()
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{v1alpha1.LabelHost: "host"}}}
			o := observed{
				member: here, rules: placement.RulesOfRegistration(&v1alpha1.ClusterRegistration{}), key: client.ObjectKeyFromObject(root),
				root: root, want: leafOf(root), leaf: leafOf(root), used: true, served: true,
				hostNamespace: placement.NamespaceOf("shop", namespace), memberNamespace: namespace,
			}
			tc.change(&o)
			if diff := cmp.Diff(tc.want, described(decideServiceStep(o))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWantedService(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.Service)
		member func(*mirror.Member)
		want   bool
		reason string
	}{
		"a Service":             {want: true},
		"a LoadBalancer":        {change: func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeLoadBalancer }, want: true},
		"no selector":           {change: func(s *corev1.Service) { s.Spec.Selector = nil }, want: true},
		"it opts out":           {change: func(s *corev1.Service) { s.Annotations = map[string]string{v1alpha1.AnnotationReflect: "false"} }},
		"another value":         {change: func(s *corev1.Service) { s.Annotations = map[string]string{v1alpha1.AnnotationReflect: "true"} }, want: true},
		"it is being deleted":   {change: func(s *corev1.Service) { s.DeletionTimestamp = new(metav1.Now()) }},
		"the host's API server": {change: func(s *corev1.Service) { s.Namespace, s.Name = "default", "kubernetes" }},
		"an external name": {change: func(s *corev1.Service) {
			s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "x"}
		}, reason: v1alpha1.ReasonEndpointsInMember},
		"the registration: none": {member: func(m *mirror.Member) { m.ReflectServices = false }},
	} {
		t.Run(name, func(t *testing.T) {
			root, m := rootService(), here
			if tc.change != nil {
				tc.change(root)
			}
			if tc.member != nil {
				tc.member(&m)
			}
			want, refusal := wantedService(root, m)
			reason := ""
			if refusal != nil {
				reason = refusal.Reason
			}
			if (want != nil) != tc.want || reason != tc.reason {
				t.Errorf("got %v and reason %q, want it: %t, reason %q", want, reason, tc.want, tc.reason)
			}
		})
	}
}
