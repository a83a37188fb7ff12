package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DeregistrationPolicy says what the deletion of a registration does with the
// claims and volumes in its member.
// +kubebuilder:validation:Enum=Retain;Drain
type DeregistrationPolicy string

const (
	// DeregistrationRetain leaves leaf claims and volumes as they are;
	// registering the same cluster again, under any name, adopts them.
	DeregistrationRetain DeregistrationPolicy = "Retain"
	// DeregistrationDrain waits until the last claim there is gone.
	DeregistrationDrain DeregistrationPolicy = "Drain"
)

// ClusterRegistrationSpec is what an admin says of a member.
type ClusterRegistrationSpec struct {
	// kubeconfigSecretRef names a Secret in the manager's namespace whose key
	// "kubeconfig" leads to the member. A changed Secret is read again.
	KubeconfigSecretRef KubeconfigSecretReference `json:"kubeconfigSecretRef"`

	// node shapes the virtual node that stands for the member in the host.
	// +optional
	// +kubebuilder:default={}
	Node NodeSpec `json:"node,omitempty"`

	// storage maps and publishes storage classes.
	// +optional
	// +kubebuilder:default={}
	Storage StorageSpec `json:"storage,omitempty"`

	// namespaces says which namespaces of the host the member takes Pods and claims
	// from.
	// +optional
	// +kubebuilder:default={}
	Namespaces NamespacesSpec `json:"namespaces,omitempty"`

	// deregistration says what deleting this registration does with the claims
	// and volumes in the member: Retain leaves them, Drain waits until the last
	// claim is gone. Neither destroys a volume that a claim uses.
	// +optional
	// +kubebuilder:default=Retain
	Deregistration DeregistrationPolicy `json:"deregistration,omitempty"`
}

// NamespacesSpec says which namespaces of the host a member takes Pods and claims from.
// In a pattern, "*" matches any characters. Namespaces of Kubernetes' own (kube-*) and
// Xylem's are never taken.
type NamespacesSpec struct {
	// allow has patterns of names: only namespaces that match one are taken. If it is
	// empty, all are.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9*]([-a-z0-9*]*[a-z0-9*])?$`
	// +listType=set
	Allow []string `json:"allow,omitempty"`
	// deny has patterns of names: namespaces that match one are not taken, whatever
	// allow says. Unless given, it is *-system, openshift*, istio-* and cert-manager,
	// so that nobody in the host takes the name of a component of the member. An empty
	// list denies none.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9*]([-a-z0-9*]*[a-z0-9*])?$`
	// +listType=set
	Deny *[]string `json:"deny,omitempty"`
}

// DefaultDeniedNamespaces are the patterns of namespaces that a member does not take,
// unless its registration says otherwise.
func DefaultDeniedNamespaces() []string {
	return []string{"*-system", "openshift*", "istio-*", "cert-manager"}
}

// KubeconfigSecretReference names a Secret in the manager's namespace.
type KubeconfigSecretReference struct {
	// name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
}

// NodeSpec shapes a virtual node.
// +kubebuilder:validation:XValidation:rule="has(self.name) ? has(oldSelf.name) && self.name == oldSelf.name : !has(oldSelf.name)",message="name cannot be changed, since Pods are bound to the node: delete the registration and make it anew"
type NodeSpec struct {
	// name of the virtual node; kosmos-<registration> unless given. It cannot
	// be changed, since Pods are bound to it.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name,omitempty"`

	// labels to add to the node. Keys of xylem.io and of Kubernetes itself are
	// refused, topology.kubernetes.io/region and /zone excepted.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('xylem.io/'))",message="labels under xylem.io/ are Xylem's own: choose a key of yours"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.matches('^([^/]*[.])?(kubernetes|k8s)[.]io/') || k in ['topology.kubernetes.io/region', 'topology.kubernetes.io/zone'])",message="labels under kubernetes.io/ and k8s.io/ are Kubernetes' own: choose a key of yours (topology.kubernetes.io/region and topology.kubernetes.io/zone are allowed)"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="not a label's key: it is [prefix/]name, and the name has at most 63 letters, digits, '-', '_', '.', and begins and ends with a letter or digit"
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(self[k]) <= 63)",message="a label's value has at most 63 characters"
	Labels map[string]string `json:"labels,omitempty"`

	// taints of the node, instead of the default kosmos.io/node=true:NoSchedule.
	// An empty list means none.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(t, self.exists_one(u, u.key == t.key && u.effect == t.effect))",message="a taint may be given once per key and effect"
	// +listType=atomic
	Taints *[]NodeTaint `json:"taints,omitempty"`

	// capacity overrides, resource by resource, what is summed from the member.
	// +optional
	// +kubebuilder:validation:MaxProperties=24
	// +kubebuilder:validation:XValidation:rule="self.all(k, !string(self[k]).startsWith('-'))",message="a capacity must not be negative"
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// podCIDRs are the ranges of the member's Pod addresses that the host shows on its
	// Pods, and so in EndpointSlices: ranges that the host's network routes to the member,
	// or ["all"]. If empty, the host shows none. Special addresses, such as loopback and
	// link-local ones, are never shown.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="self.all(c, c == 'all' || isCIDR(c))",message="podCIDRs must be CIDRs, such as 10.8.0.0/16, or the word all"
	// +kubebuilder:validation:XValidation:rule="!self.exists(c, c == 'all') || size(self) == 1",message="podCIDRs that are all need no others"
	// +listType=set
	PodCIDRs []string `json:"podCIDRs,omitempty"`
}

// NodeTaint is a taint of a virtual node.
type NodeTaint struct {
	// key of the taint.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('node.kubernetes.io/')",message="taints under node.kubernetes.io/ are set by Kubernetes from the node's conditions"
	// +kubebuilder:validation:XValidation:rule="!format.qualifiedName().validate(self).hasValue()",message="not a taint's key: it is [prefix/]name, and the name has at most 63 letters, digits, '-', '_', '.', and begins and ends with a letter or digit"
	Key string `json:"key"`
	// value of the taint.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!format.labelValue().validate(self).hasValue()",message="not a taint's value: it has at most 63 letters, digits, '-', '_', '.', and begins and ends with a letter or digit"
	Value string `json:"value,omitempty"`
	// effect of the taint on Pods that do not tolerate it.
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect corev1.TaintEffect `json:"effect"`
}

// StorageSpec maps and publishes storage classes.
type StorageSpec struct {
	// classes maps host class names to member class names, exactly; wins over
	// the class parameter xylem.io/member-class, which wins over the prefix.
	// Without any of these, the same name is looked for in the member.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=host
	Classes []ClassMapping `json:"classes,omitempty"`

	// prefix of host class names: with virtual-disk-, the default, host class
	// virtual-disk-ssd is the member's class ssd. Empty: no such rule.
	// +optional
	// +kubebuilder:default="virtual-disk-"
	// +kubebuilder:validation:MaxLength=252
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)*([a-z0-9][-a-z0-9]*)?$`
	Prefix *string `json:"prefix,omitempty"`

	// reflect publishes the member's classes in the host.
	// +optional
	// +kubebuilder:default={}
	Reflect ReflectSpec `json:"reflect,omitempty"`
}

// ClassMapping maps one host class to one member class.
type ClassMapping struct {
	// host is the class that users name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Host string `json:"host"`
	// member is the class of the leaf claim.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Member string `json:"member"`
}

// ReflectSpec says which classes of the member are published in the host, under
// their own names, for Pods in members that offer them.
type ReflectSpec struct {
	// enabled turns reflection on.
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`
	// selector chooses the member's classes by their labels; empty means all.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn'] ? has(e.values) && size(e.values) > 0 : e.operator in ['Exists', 'DoesNotExist'] && (!has(e.values) || size(e.values) == 0))",message="In and NotIn need values, Exists and DoesNotExist have none"
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// max is how many classes are published at most: those that are already, then by
	// name.
	// +optional
	// +kubebuilder:default=32
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	Max int32 `json:"max,omitempty"`
}

// DefaultMaxReflected is how many classes of a member are published at most, unless
// its registration says otherwise.
const DefaultMaxReflected = 32

// ClusterRegistrationStatus is what Xylem knows of a member.
type ClusterRegistrationStatus struct {
	// clusterID is the UID of the member's kube-system namespace, recorded at
	// the first connection. A cluster that answers with another one is refused.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
	// kubernetesVersion of the member's API server.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// nodeName of the virtual node.
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// tokenExpires is when the service account's token expires by which the manager is
	// connected. Not there for other credentials.
	// +optional
	TokenExpires *metav1.Time `json:"tokenExpires,omitempty"`
	// volumes counts the leaf volumes of this host in the member.
	// +optional
	// +kubebuilder:default={}
	Volumes VolumeCounts `json:"volumes,omitzero"`
	// orphans are the first of the orphaned volumes, the oldest finding first.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=volume
	Orphans []OrphanedVolume `json:"orphans,omitempty"`
	// observedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Connected, NodeReady, Synced, VolumesAccounted,
	// DeletionsProgressing, ClassesReflected, TokenFresh, Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// VolumeCounts counts leaf volumes by state.
type VolumeCounts struct {
	// bound volumes have a host PV and a live claim.
	// +optional
	// +kubebuilder:default=0
	Bound int32 `json:"bound"`
	// pending claims were pushed and have no volume yet.
	// +optional
	// +kubebuilder:default=0
	Pending int32 `json:"pending"`
	// deleting volumes are on their way out.
	// +optional
	// +kubebuilder:default=0
	Deleting int32 `json:"deleting"`
	// orphaned volumes have no root; nothing destroys them.
	// +optional
	// +kubebuilder:default=0
	Orphaned int32 `json:"orphaned"`
}

// MaxOrphans is how many orphaned volumes a status names.
const MaxOrphans = 32

// OrphanedVolume is a leaf volume that has no root.
type OrphanedVolume struct {
	// volume is the name of the PersistentVolume in the member.
	// +kubebuilder:validation:MaxLength=253
	Volume string `json:"volume"`
	// claim is the claim of the host that it was made for, <namespace>/<name>.
	// +kubebuilder:validation:MaxLength=512
	Claim string `json:"claim"`
	// reason: RootGone, RootReplaced, SurplusVolume or WithdrawnLate.
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`
	// since when it has been known.
	Since metav1.Time `json:"since"`
}

// ClusterRegistration makes a cluster a member: Pods of the host run there,
// and their claims' disks are made there.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=cr
// +kubebuilder:printcolumn:name="Connected",type=string,JSONPath=`.status.conditions[?(@.type=="Connected")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.nodeName`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.kubernetesVersion`
// +kubebuilder:printcolumn:name="Volumes",type=integer,JSONPath=`.status.volumes.bound`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Connected")].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 56",message="the name may have 56 characters at most, since it names a node and is a label's value"
type ClusterRegistration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClusterRegistrationSpec   `json:"spec"`
	Status ClusterRegistrationStatus `json:"status,omitempty"`
}

// NodeName is the name of the registration's virtual node.
func (r *ClusterRegistration) NodeName() string {
	if r.Spec.Node.Name != "" {
		return r.Spec.Node.Name
	}
	return DefaultNodeNamePrefix + r.Name
}

// ClusterRegistrationList is a list of ClusterRegistrations.
// +kubebuilder:object:root=true
type ClusterRegistrationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterRegistration `json:"items"`
}
