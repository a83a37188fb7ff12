package mirror

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const hostID = "host-id"

// member of most tests.
var member = Member{
	Registration: "cluster38",
	ClusterID:    "member-id",
	NodeName:     "kosmos-cluster38",
	HostID:       hostID,
}

func memberWithCIDRs(cidrs ...string) Member {
	m := member
	for _, cidr := range cidrs {
		m.PodCIDRs = append(m.PodCIDRs, netip.MustParsePrefix(cidr))
	}
	return m
}

// rootPod is a root Pod with a spec.
func rootPod(spec corev1.PodSpec) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "pod-uid", Generation: 3},
		Spec:       spec,
	}
}

func ptr[T any](v T) *T { return &v }
