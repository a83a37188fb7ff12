package mirrortest

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/internal/mirror"
)

// HostID is the cluster ID of the host in tests.
const HostID = "host-id"

// Member is the member in most tests.
var Member = mirror.Member{
	HostShowsPodResources: true,
	Registration:          "cluster38",
	ClusterID:             "member-id",
	NodeName:              "kosmos-cluster38",
	HostID:                HostID,
}

// MemberWithCIDRs is Member with podCIDRs.
func MemberWithCIDRs(cidrs ...string) mirror.Member {
	m := Member
	for _, cidr := range cidrs {
		m.PodCIDRs = append(m.PodCIDRs, netip.MustParsePrefix(cidr))
	}
	return m
}

// NewRootPod returns a root Pod with the given spec.
func NewRootPod(spec corev1.PodSpec) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "pod-uid", Generation: 3},
		Spec:       spec,
	}
}

// PointerTo returns a pointer to a value.
func PointerTo[T any](v T) *T { return &v }

// ResourceAmounts returns a ResourceList from pairs of names and quantities.
func ResourceAmounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for pair := range slices.Chunk(pairs, 2) {
		list[corev1.ResourceName(pair[0])] = resource.MustParse(pair[1])
	}
	return list
}

// StorageAmount returns a ResourceList with an amount of storage.
func StorageAmount(amount string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(amount)}
}

// NewRootClaim returns a root claim with the given spec.
func NewRootClaim(spec corev1.PersistentVolumeClaimSpec) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "disk", UID: "claim-uid"},
		Spec:       spec,
	}
}

// ConfigCopies names the copies of the roots' namespace in tests.
var ConfigCopies = mirror.ConfigCopies{HostID: HostID, NamespaceUID: "shop-uid"}

// NodeRequirement returns a node selector requirement that a label has one of the given values.
func NodeRequirement(key string, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

// NodeSelectorTerm returns a term of a node selector.
func NodeSelectorTerm(expressions ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: expressions}
}

// NodeSelectorOf returns a node selector with the given terms.
func NodeSelectorOf(terms ...corev1.NodeSelectorTerm) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: terms}
}

// NewTokenVolume returns the volume that ServiceAccount admission adds to every Pod.
func NewTokenVolume(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: PointerTo(int64(3607))}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
				Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}},
			}}},
		},
	}}}
}

// NewClaimVolume returns a Pod's volume that uses a claim.
func NewClaimVolume(name, claim string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}}
}
