package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DeregistrationPolicy defines what happens to the claims and volumes in a member when its
// registration is deleted.
// +kubebuilder:validation:Enum=Retain;Drain
type DeregistrationPolicy string

const (
	// DeregistrationRetain keeps leaf claims and volumes. Registering the same cluster
	// again, under any name, adopts them.
	DeregistrationRetain DeregistrationPolicy = "Retain"
	// DeregistrationDrain waits until the last claim there is deleted.
	DeregistrationDrain DeregistrationPolicy = "Drain"
)

// AwayPolicy defines what happens to the host's Pods of a member that is away.
// +kubebuilder:validation:Enum=Keep;Evict
type AwayPolicy string

const (
	// WhenAwayKeep leaves the Pods as they are until the member is back, or somebody
	// deletes them. No Pod runs twice, and none is killed when the member returns.
	WhenAwayKeep AwayPolicy = "Keep"
	// WhenAwayEvict makes the virtual node not Ready. The host evicts the Pods when their
	// tolerations end, by default after five minutes.
	WhenAwayEvict AwayPolicy = "Evict"
)

// ClusterRegistrationSpec is the configuration of a member.
type ClusterRegistrationSpec struct {
	// kubeconfigSecretRef names a Secret in the manager's namespace with the member's
	// kubeconfig in its key "kubeconfig". Xylem reads a changed Secret again.
	KubeconfigSecretRef KubeconfigSecretReference `json:"kubeconfigSecretRef"`

	// node configures the virtual node that represents the member in the host.
	// +optional
	// +kubebuilder:default={}
	Node NodeSpec `json:"node,omitempty"`

	// storage maps and publishes storage classes.
	// +optional
	// +kubebuilder:default={}
	Storage StorageSpec `json:"storage,omitempty"`

	// namespaces selects the namespaces of the host whose Pods and claims the member
	// accepts.
	// +optional
	// +kubebuilder:default={}
	Namespaces NamespacesSpec `json:"namespaces,omitempty"`

	// deregistration defines what happens to the claims and volumes in the member when this
	// registration is deleted: Retain keeps them, Drain waits until the last claim is
	// deleted. Neither destroys a volume that a claim uses.
	// +optional
	// +kubebuilder:default=Retain
	Deregistration DeregistrationPolicy `json:"deregistration,omitempty"`
}

// NamespacesSpec selects the namespaces of the host whose Pods and claims a member
// accepts. In a pattern, "*" matches any characters. The namespaces of Kubernetes (kube-*)
// and of Xylem are never accepted.
type NamespacesSpec struct {
	// allow has patterns of names: the member accepts only namespaces that match one. If
	// it is empty, the member accepts all.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9*]([-a-z0-9*]*[a-z0-9*])?$`
	// +listType=set
	Allow []string `json:"allow,omitempty"`
	// deny has patterns of names: the member accepts no namespace that matches one,
	// whatever allow says. The default is *-system, openshift*, istio-* and cert-manager,
	// so that no namespace of the host collides with a component of the member. An empty
	// list denies none.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9*]([-a-z0-9*]*[a-z0-9*])?$`
	// +listType=set
	Deny *[]string `json:"deny,omitempty"`
	// matchLabels has labels: the member accepts only namespaces that have all of them,
	// whatever allow and deny say. If it is empty, labels do not matter. A later change of
	// the rules, or of a namespace's labels, stops what is new: what the member has already
	// stays there, and the condition NamespacesAdmitted lists it.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="not a label's key: it is [prefix/]name, and the name has at most 63 letters, digits, '-', '_', '.', and begins and ends with a letter or digit"
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(self[k]) <= 63)",message="a label's value has at most 63 characters"
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
}

// DefaultDeniedNamespaces are the patterns of namespaces that a member does not accept by
// default.
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

// NodeSpec configures a virtual node.
// +kubebuilder:validation:XValidation:rule="has(self.name) ? has(oldSelf.name) && self.name == oldSelf.name : !has(oldSelf.name)",message="name cannot be changed, since Pods are bound to the node: delete the registration and create it again"
type NodeSpec struct {
	// name of the virtual node; the default is kosmos-<registration>. It is immutable,
	// since Pods are bound to the node.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name,omitempty"`

	// labels of the node. Keys of xylem.io and of Kubernetes itself are rejected, except
	// topology.kubernetes.io/region and topology.kubernetes.io/zone.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('xylem.io/'))",message="labels under xylem.io/ are Xylem's own: choose a key of yours"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.matches('^([^/]*[.])?(kubernetes|k8s)[.]io/') || k in ['topology.kubernetes.io/region', 'topology.kubernetes.io/zone'])",message="labels under kubernetes.io/ and k8s.io/ are Kubernetes' own: choose a key of yours (topology.kubernetes.io/region and topology.kubernetes.io/zone are allowed)"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="not a label's key: it is [prefix/]name, and the name has at most 63 letters, digits, '-', '_', '.', and begins and ends with a letter or digit"
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(self[k]) <= 63)",message="a label's value has at most 63 characters"
	Labels map[string]string `json:"labels,omitempty"`

	// taints of the node. They replace the default kosmos.io/node=true:NoSchedule. An
	// empty list means none.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(t, self.exists_one(u, u.key == t.key && u.effect == t.effect))",message="a taint may be given once per key and effect"
	// +listType=atomic
	Taints *[]NodeTaint `json:"taints,omitempty"`

	// capacity overrides single resources of the sum that Xylem computes from the
	// member's nodes.
	// +optional
	// +kubebuilder:validation:MaxProperties=24
	// +kubebuilder:validation:XValidation:rule="self.all(k, !string(self[k]).startsWith('-'))",message="a capacity must not be negative"
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// podCIDRs are the ranges of the member's Pod IPs that the host shows on Pods, and so in
	// EndpointSlices. Set ranges that the host's network routes to the member, or ["all"].
	// If empty, the host shows no Pod IP. It never shows special addresses, such as
	// loopback and link-local ones.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="self.all(c, c == 'all' || isCIDR(c))",message="podCIDRs must be CIDRs, such as 10.8.0.0/16, or the word all"
	// +kubebuilder:validation:XValidation:rule="!self.exists(c, c == 'all') || size(self) == 1",message="podCIDRs with the word all must have no other entry"
	// +listType=set
	PodCIDRs []string `json:"podCIDRs,omitempty"`

	// whenAway defines what happens to the Pods of a member that is away for longer than the
	// manager's --node-grace. Either way they become unready, and new Pods go elsewhere.
	// Keep leaves them until the member is back, however long that takes. Evict has the
	// host evict them when their tolerations of an unready node end, five minutes by
	// default: their owners replace them, while the old ones may still run in the member.
	// +optional
	// +kubebuilder:default=Keep
	WhenAway AwayPolicy `json:"whenAway,omitempty"`
}

// NodeTaint is a taint of a virtual node.
type NodeTaint struct {
	// key of the taint.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self != 'xylem.io/member-away'",message="the taint xylem.io/member-away is set by Xylem while the member is away"
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
	// classes maps host class names to member class names. It takes precedence over the
	// class parameter xylem.io/member-class, which takes precedence over the prefix. If
	// none of these applies, the member's class has the same name.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=host
	Classes []ClassMapping `json:"classes,omitempty"`

	// attributesClasses maps the names of VolumeAttributesClasses in the same way: it takes
	// precedence over the parameter xylem.io/member-attributes-class, and that over the
	// prefix. A changed mapping applies when a claim's volumeAttributesClassName changes.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=host
	AttributesClasses []ClassMapping `json:"attributesClasses,omitempty"`

	// prefix of host class names: with virtual-disk-, the default, host class
	// virtual-disk-ssd maps to the member's class ssd. An empty prefix disables the rule.
	// +optional
	// +kubebuilder:default="virtual-disk-"
	// +kubebuilder:validation:MaxLength=252
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)*([a-z0-9][-a-z0-9]*)?$`
	Prefix *string `json:"prefix,omitempty"`

	// snapshotClasses maps host VolumeSnapshotClass names to those of the member. It takes
	// precedence over the class parameter xylem.io/member-snapshot-class, which takes
	// precedence over the prefix. If none of these applies, the member's class has the same
	// name.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=host
	SnapshotClasses []ClassMapping `json:"snapshotClasses,omitempty"`

	// reflect publishes classes of the member in the host.
	// +optional
	// +kubebuilder:default={}
	Reflect ReflectSpec `json:"reflect,omitempty"`

	// dataSources lists kinds of objects that populators in the member create volumes from,
	// such as ReplicationDestination of volsync.backube. A claim of the host with such a data
	// source is created in the member with the same source: an object of that name in the
	// member's namespace of the same name. Claims and VolumeSnapshots need no entry: Xylem
	// creates a claim in the member that has them. All other kinds are rejected.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=apiGroup
	// +listMapKey=kind
	DataSources []DataSourceKind `json:"dataSources,omitempty"`
}

// DataSourceKind is a kind of objects that a populator creates volumes from.
// +kubebuilder:validation:XValidation:rule="self.apiGroup != 'snapshot.storage.k8s.io'",message="a snapshot is restored in the member that has it, and needs no entry"
type DataSourceKind struct {
	// apiGroup of the objects.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	APIGroup string `json:"apiGroup"`
	// kind of the objects.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`
	Kind string `json:"kind"`
}

// ClassMapping maps one host class to one member class.
type ClassMapping struct {
	// host is the class that objects of the host name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Host string `json:"host"`
	// member is the class of their leaf objects.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Member string `json:"member"`
}

// ReflectSpec selects the member's classes that Xylem publishes in the host under their
// own names. Pods with such a class run only in members that offer it.
type ReflectSpec struct {
	// enabled enables reflection.
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`
	// selector selects the member's classes by their labels. If empty, it selects all.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn'] ? has(e.values) && size(e.values) > 0 : e.operator in ['Exists', 'DoesNotExist'] && (!has(e.values) || size(e.values) == 0))",message="In and NotIn need values, Exists and DoesNotExist have none"
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// max is the largest number of classes to publish. Classes that are published already
	// come first, then new ones by name.
	// +optional
	// +kubebuilder:default=32
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	Max int32 `json:"max,omitempty"`
}

// DefaultMaxReflected is the default of max.
const DefaultMaxReflected = 32

// ClusterRegistrationStatus is what Xylem has observed about a member.
type ClusterRegistrationStatus struct {
	// clusterID is the UID of the member's kube-system namespace, recorded at the first
	// connection. Xylem rejects a cluster with another ID.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
	// kubernetesVersion of the member's API server.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// nodeName of the virtual node.
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// tokenExpires is when the manager's service account token for the member expires. It
	// is absent for other credentials.
	// +optional
	TokenExpires *metav1.Time `json:"tokenExpires,omitempty"`
	// volumes counts the leaf volumes of this host in the member.
	// +optional
	// +kubebuilder:default={}
	Volumes VolumeCounts `json:"volumes,omitzero"`
	// orphans lists orphaned volumes, 32 at most, the oldest finding first.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=volume
	Orphans []OrphanedVolume `json:"orphans,omitempty"`
	// snapshots counts the snapshots of this host in the member.
	// +optional
	// +kubebuilder:default={}
	Snapshots SnapshotCounts `json:"snapshots,omitzero"`
	// orphanedSnapshots lists orphaned snapshots, 32 at most, the oldest finding first.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=content
	OrphanedSnapshots []OrphanedSnapshot `json:"orphanedSnapshots,omitempty"`
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Connected, NodeReady, Synced, VolumesAccounted, SnapshotsAccounted,
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
	// pending claims exist in the member and have no volume yet.
	// +optional
	// +kubebuilder:default=0
	Pending int32 `json:"pending"`
	// deleting volumes are being deleted.
	// +optional
	// +kubebuilder:default=0
	Deleting int32 `json:"deleting"`
	// orphaned volumes have no root. Xylem does not destroy them.
	// +optional
	// +kubebuilder:default=0
	Orphaned int32 `json:"orphaned"`
}

// MaxOrphans is the largest number of orphaned volumes that a status lists.
const MaxOrphans = 32

// OrphanedVolume is a leaf volume that has no root.
type OrphanedVolume struct {
	// volume is the name of the PersistentVolume in the member.
	// +kubebuilder:validation:MaxLength=253
	Volume string `json:"volume"`
	// claim is the host's claim that the volume was provisioned for, <namespace>/<name>. Empty if
	// the member had the volume before, and no claim used it.
	// +kubebuilder:validation:MaxLength=512
	Claim string `json:"claim"`
	// reason: RootGone, RootReplaced, SurplusVolume or WithdrawnLate.
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`
	// since is when Xylem found it.
	Since metav1.Time `json:"since"`
}

// SnapshotCounts counts snapshots by state.
type SnapshotCounts struct {
	// ready snapshots can be restored from.
	// +optional
	// +kubebuilder:default=0
	Ready int32 `json:"ready"`
	// pending snapshots are being taken, or cannot be used.
	// +optional
	// +kubebuilder:default=0
	Pending int32 `json:"pending"`
	// deleting snapshots are being deleted.
	// +optional
	// +kubebuilder:default=0
	Deleting int32 `json:"deleting"`
	// orphaned snapshots have no content in the host. Xylem does not destroy them.
	// +optional
	// +kubebuilder:default=0
	Orphaned int32 `json:"orphaned"`
}

// OrphanedSnapshot is a snapshot in a member that no content of the host represents.
type OrphanedSnapshot struct {
	// content is the name of the VolumeSnapshotContent in the member.
	// +kubebuilder:validation:MaxLength=253
	Content string `json:"content"`
	// snapshot is the host's VolumeSnapshot that it was taken for, <namespace>/<name>.
	// +kubebuilder:validation:MaxLength=512
	Snapshot string `json:"snapshot"`
	// reason: RootGone or RootReplaced.
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`
	// since is when Xylem found it.
	Since metav1.Time `json:"since"`
}

// ClusterRegistration registers a cluster as a member, which runs Pods of the host and
// provisions the disks of their claims.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=cr
// +kubebuilder:printcolumn:name="Connected",type=string,JSONPath=`.status.conditions[?(@.type=="Connected")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.nodeName`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.kubernetesVersion`
// +kubebuilder:printcolumn:name="Volumes",type=integer,JSONPath=`.status.volumes.bound`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
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

// WhenAway is the policy for the registration's Pods while its member is away.
func (r *ClusterRegistration) WhenAway() AwayPolicy {
	if r.Spec.Node.WhenAway != "" {
		return r.Spec.Node.WhenAway
	}
	return WhenAwayKeep
}

// ClusterRegistrationList is a list of ClusterRegistrations.
// +kubebuilder:object:root=true
type ClusterRegistrationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterRegistration `json:"items"`
}
