package v1alpha1

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DeregistrationPolicy defines what happens to the claims and volumes in a member when its
// registration is deleted.
// +kubebuilder:validation:Enum=Retain;Drain
type DeregistrationPolicy string

const (
	// DeregistrationRetain keeps leaf claims and volumes. If the same cluster is registered again,
	// under any name, Xylem adopts them.
	DeregistrationRetain DeregistrationPolicy = "Retain"
	// DeregistrationDrain waits until the last claim in the member is deleted.
	DeregistrationDrain DeregistrationPolicy = "Drain"
)

// AwayPolicy defines what happens to the Pods on a virtual node whose member is away.
// +kubebuilder:validation:Enum=Keep;Evict
type AwayPolicy string

const (
	// WhenAwayKeep leaves the Pods as they are until the member is connected again or somebody
	// deletes them. No Pod runs twice, and none is killed when the member is connected again.
	WhenAwayKeep AwayPolicy = "Keep"
	// WhenAwayEvict marks the virtual node as not Ready. The host evicts the Pods when their
	// tolerations expire, by default after five minutes.
	WhenAwayEvict AwayPolicy = "Evict"
)

// ClusterRegistrationSpec configures a member.
// +kubebuilder:validation:XValidation:rule="!has(self.nodes) || size(self.nodes) == 0 || !has(self.node) || !has(self.node.capacity) || size(self.node.capacity) == 0",message="node.capacity has no meaning with nodes, because each virtual node has the capacity of its group: remove one of them"
type ClusterRegistrationSpec struct {
	// kubeconfigSecretRef names a Secret in the manager's namespace with the member's kubeconfig in
	// its key "kubeconfig". Xylem rereads the Secret when it changes.
	KubeconfigSecretRef KubeconfigSecretReference `json:"kubeconfigSecretRef"`

	// node configures the virtual node that represents the member in the host.
	// +optional
	// +kubebuilder:default={}
	Node NodeSpec `json:"node,omitempty"`

	// nodes divides the member into groups of nodes. The host gets one virtual node for each group, named
	// <group>.<name of node>, instead of one for the whole member. All of them have the labels and taints of
	// node. The host's scheduler then selects a group, and the Pods run on the group's nodes. A node of the
	// member belongs to the first rule that matches it; nodes that match no rule get no Pods. If the rules
	// change, virtual nodes without a group accept no new Pods, and are deleted once they have no Pods.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(a, !has(a.name) || self.exists_one(b, has(b.name) && b.name == a.name))",message="two groups must not have the same name"
	// +listType=atomic
	Nodes []NodeGroup `json:"nodes,omitempty"`

	// storage maps and publishes storage classes.
	// +optional
	// +kubebuilder:default={}
	Storage StorageSpec `json:"storage,omitempty"`

	// namespaces selects the host namespaces whose Pods and claims the member accepts.
	// +optional
	// +kubebuilder:default={}
	Namespaces NamespacesSpec `json:"namespaces,omitempty"`

	// apiServer lets Pods in the member use the host's API server with the identity of their
	// ServiceAccount in the host. If it is not set, the leaf Pods get no tokens.
	// +optional
	APIServer *APIServerSpec `json:"apiServer,omitempty"`

	// pods defines how Pods of the host run in the member.
	// +optional
	// +kubebuilder:default={}
	Pods PodsSpec `json:"pods,omitempty"`

	// services defines which of the host's Services exist in the member, too.
	// +optional
	// +kubebuilder:default={}
	Services ServicesSpec `json:"services,omitempty"`

	// deregistration defines what happens to the claims and volumes in the member when this
	// registration is deleted: Retain keeps them, Drain waits until the last claim is
	// deleted. Neither destroys a volume that a claim uses.
	// +optional
	// +kubebuilder:default=Retain
	Deregistration DeregistrationPolicy `json:"deregistration,omitempty"`
}

// APIServerSpec describes how Pods in a member reach the host's API server. Xylem requests their tokens as the virtual
// node, which needs a ClusterRole for this registration; `kubectl xylem register` creates it.
type APIServerSpec struct {
	// url is the address of the host's API server for Pods in the member, such as https://10.0.0.1:6443. The API
	// server's serving certificate must be valid for its host name or IP address.
	// +kubebuilder:validation:MaxLength=300
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() == 'https' && url(self).getHostname() != '' && url(self).getEscapedPath() in ['', '/'] && url(self).getQuery().size() == 0 && !self.contains('@') && !self.contains('#')",message="url must have the form https://<host>[:<port>], without a path, because client libraries in Pods know only the host and the port"
	URL string `json:"url"`
	// caBundle contains the PEM-encoded certificates with which Pods verify the API server. It defaults to those
	// with which the manager verifies it.
	// +optional
	// +kubebuilder:validation:MaxLength=100000
	// +kubebuilder:validation:XValidation:rule="string(self).contains('-----BEGIN CERTIFICATE-----')",message="caBundle must contain certificates in PEM form"
	CABundle []byte `json:"caBundle,omitempty"`
}

// ServicesSpec defines which of the host's Services exist in a member, too.
type ServicesSpec struct {
	// reflect selects the Services that Xylem creates in the member, in each namespace that has Pods
	// there: All, or None. A Service with the annotation xylem.io/reflect=false is never created there.
	// +optional
	// +kubebuilder:default=All
	Reflect ServiceReflection `json:"reflect,omitempty"`

	// reachable are the ranges of addresses outside the member that the member's Pods can reach, such
	// as Pod IPs of the host and of other members, or ["all"]. Xylem adds a Service's endpoints in these
	// ranges to the endpoints that the Service has in the member. If empty, it adds none. It never adds
	// special addresses, such as loopback and link-local addresses.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="self.all(c, c == 'all' || isCIDR(c))",message="reachable must be CIDRs, such as 10.8.0.0/16, or the word all"
	// +kubebuilder:validation:XValidation:rule="!self.exists(c, c == 'all') || size(self) == 1",message="if reachable contains the word all, it must have no other entry"
	// +listType=set
	Reachable []string `json:"reachable,omitempty"`
}

// ServiceReflection selects Services.
// +kubebuilder:validation:Enum=All;None
type ServiceReflection string

const (
	// ReflectAllServices creates all Services of the namespaces that have Pods in the member.
	ReflectAllServices ServiceReflection = "All"
	// ReflectNoServices creates no Services in the member.
	ReflectNoServices ServiceReflection = "None"
)

// NamespacesSpec selects the host namespaces whose Pods and claims a member accepts. In a pattern,
// "*" matches any characters. The namespaces of Kubernetes (kube-*) and Xylem are never accepted.
type NamespacesSpec struct {
	// allow lists name patterns. The member accepts only namespaces that match one of them. If the
	// list is empty, the member accepts all namespaces.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9*]([-a-z0-9*]*[a-z0-9*])?$`
	// +listType=set
	Allow []string `json:"allow,omitempty"`
	// deny lists name patterns. The member rejects namespaces that match one of them, even if it
	// matches allow. The default is *-system, openshift*, istio-* and cert-manager, so that no host
	// namespace collides with a component of the member. A list replaces the default: repeat those of
	// its patterns that the member needs. An empty list denies nothing.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9*]([-a-z0-9*]*[a-z0-9*])?$`
	// +listType=set
	Deny *[]string `json:"deny,omitempty"`
	// matchLabels restricts the accepted namespaces further, to those that have all of these
	// labels. If it is empty, Xylem ignores labels. If a namespace is no longer accepted because
	// the rules or its labels change, Xylem creates no more of its objects in the member. Existing
	// objects stay, and the condition NamespacesAdmitted counts them.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="a label key must have the form [prefix/]name, where the name has no more than 63 characters (letters, digits, '-', '_', '.'), and begins and ends with a letter or digit"
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(self[k]) <= 63)",message="a label value must have no more than 63 characters"
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
}

// PodsSpec defines how Pods of the host run in a member.
type PodsSpec struct {
	// priorityClasses maps host PriorityClass names to member PriorityClass names. The member's admin
	// must grant each of the member's classes by name. A Pod whose class is not listed gets the member's
	// default priority. A changed mapping applies to Pods that are pushed later.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:XValidation:rule="self.all(c, !c.member.startsWith('system-'))",message="the member's PriorityClass must not begin with system-, because Pods of the host must not preempt the member's own system workloads"
	// +listType=map
	// +listMapKey=host
	PriorityClasses []ClassMapping `json:"priorityClasses,omitempty"`
}

// DefaultDeniedNamespaces are the namespace patterns that a member rejects by default.
func DefaultDeniedNamespaces() []string {
	return []string{"*-system", "openshift*", "istio-*", "cert-manager"}
}

// KubeconfigSecretReference names a Secret in the manager's namespace.
type KubeconfigSecretReference struct {
	// name is the name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
}

// NodeSpec configures a virtual node.
// +kubebuilder:validation:XValidation:rule="has(self.name) ? has(oldSelf.name) && self.name == oldSelf.name : !has(oldSelf.name)",message="name cannot be changed, because Pods are bound to the node: delete the registration and create it again"
type NodeSpec struct {
	// name is the name of the virtual node. It defaults to kosmos-<registration>, and is immutable
	// because Pods are bound to the node.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name,omitempty"`

	// labels are the labels of the node. Keys of Xylem and Kubernetes are rejected, except
	// topology.kubernetes.io/region and topology.kubernetes.io/zone.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('xylem.io/') && !k.startsWith('backend.xylem.io/'))",message="labels under xylem.io/ and backend.xylem.io/ are reserved for Xylem: use another key"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.matches('^([^/]*[.])?(kubernetes|k8s)[.]io/') || k in ['topology.kubernetes.io/region', 'topology.kubernetes.io/zone'])",message="labels under kubernetes.io/ and k8s.io/ are reserved for Kubernetes: use another key (topology.kubernetes.io/region and topology.kubernetes.io/zone are allowed)"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="a label key must have the form [prefix/]name, where the name has no more than 63 characters (letters, digits, '-', '_', '.'), and begins and ends with a letter or digit"
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(self[k]) <= 63)",message="a label value must have no more than 63 characters"
	Labels map[string]string `json:"labels,omitempty"`

	// taints are the taints of the node. They override the default, kosmos.io/node=true:NoSchedule.
	// An empty list means no taints.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(t, self.exists_one(u, u.key == t.key && u.effect == t.effect))",message="two taints must not have the same key and effect"
	// +listType=atomic
	Taints *[]NodeTaint `json:"taints,omitempty"`

	// capacity overrides individual resources of the capacity that Xylem computes from the member's
	// nodes.
	// +optional
	// +kubebuilder:validation:MaxProperties=24
	// +kubebuilder:validation:XValidation:rule="self.all(k, !string(self[k]).startsWith('-'))",message="a capacity must not be negative"
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// podCIDRs are the ranges of member Pod IPs that the host shows in the status of Pods, and
	// therefore in EndpointSlices. Set ranges that the host's network routes to the member, or
	// ["all"]. If empty, the host shows no Pod IPs. It never shows special addresses, such as loopback
	// and link-local addresses.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="self.all(c, c == 'all' || isCIDR(c))",message="podCIDRs must be CIDRs, such as 10.8.0.0/16, or the word all"
	// +kubebuilder:validation:XValidation:rule="!self.exists(c, c == 'all') || size(self) == 1",message="if podCIDRs contains the word all, it must have no other entry"
	// +listType=set
	PodCIDRs []string `json:"podCIDRs,omitempty"`

	// whenAway defines what happens to the Pods of a member that is away for longer than the manager's
	// --node-grace. With either policy, the Pods become unready, and the scheduler places new Pods
	// elsewhere. Keep leaves them until the member is connected again, however long that takes. With
	// Evict, the host evicts them when their tolerations of an unready node expire, by default after
	// five minutes. Their owners replace them, while the old Pods may still run in the member.
	// +optional
	// +kubebuilder:default=Keep
	WhenAway AwayPolicy `json:"whenAway,omitempty"`
}

// NodeGroup is a rule that selects nodes of a member for one or several virtual nodes.
// +kubebuilder:validation:XValidation:rule="has(self.name) != has(self.forEach)",message="a rule must have either name, for one group, or forEach, for several"
// +kubebuilder:validation:XValidation:rule="has(self.forEach) || has(self.selector)",message="a rule with name must have a selector"
type NodeGroup struct {
	// name is the name of the group of all nodes that selector selects. It is the first part of the virtual
	// node's name, <name>.<name of spec.node>.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=22
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`
	// selector selects nodes of the member by their labels. With forEach, it is optional, and restricts the
	// rule to these nodes.
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="a selector must not be empty: omit spec.nodes for one virtual node that represents the whole member"
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// forEach creates one group for each value of a label, or for each node.
	// +optional
	ForEach *ForEachNode `json:"forEach,omitempty"`
}

// ForEachNode divides nodes into groups.
// +kubebuilder:validation:XValidation:rule="has(self.labelKey) != (has(self.node) && self.node)",message="forEach must have either labelKey or node: true"
type ForEachNode struct {
	// labelKey is the key of a label of the member's nodes, such as topology.kubernetes.io/zone. Each value is a
	// group. Nodes without the label do not match the rule.
	// +optional
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:XValidation:rule="!format.qualifiedName().validate(self).hasValue()",message="a label key must have the form [prefix/]name, where the name has no more than 63 characters (letters, digits, '-', '_', '.'), and begins and ends with a letter or digit"
	LabelKey string `json:"labelKey,omitempty"`
	// node makes each node a group of its own.
	// +optional
	Node bool `json:"node,omitempty"`
}

// MaxNodesOfMember is the maximum number of virtual nodes of a member.
const MaxNodesOfMember = 500

// NodeTaint is a taint of a virtual node.
type NodeTaint struct {
	// key is the key of the taint.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self != 'xylem.io/member-away'",message="the taint xylem.io/member-away is set by Xylem while the member is away"
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('node.kubernetes.io/')",message="taints under node.kubernetes.io/ are set by Kubernetes from the node's conditions"
	// +kubebuilder:validation:XValidation:rule="!format.qualifiedName().validate(self).hasValue()",message="a taint key must have the form [prefix/]name, where the name has no more than 63 characters (letters, digits, '-', '_', '.'), and begins and ends with a letter or digit"
	Key string `json:"key"`
	// value is the value of the taint.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!format.labelValue().validate(self).hasValue()",message="a taint value must have no more than 63 characters (letters, digits, '-', '_', '.'), and must begin and end with a letter or digit"
	Value string `json:"value,omitempty"`
	// effect is the effect of the taint on Pods that do not tolerate it.
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

	// attributesClasses maps VolumeAttributesClass names in the same way. It takes precedence over the
	// parameter xylem.io/member-attributes-class, which takes precedence over the prefix. A changed
	// mapping takes effect when a claim's volumeAttributesClassName changes.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=host
	AttributesClasses []ClassMapping `json:"attributesClasses,omitempty"`

	// prefix is the prefix of host class names. With the default, virtual-disk-, the host class
	// virtual-disk-ssd maps to the member's class ssd. An empty prefix disables the rule.
	// +optional
	// +kubebuilder:default="virtual-disk-"
	// +kubebuilder:validation:MaxLength=252
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)*([a-z0-9][-a-z0-9]*)?$`
	Prefix *string `json:"prefix,omitempty"`

	// snapshotClasses maps host VolumeSnapshotClass names to member VolumeSnapshotClass names. It
	// takes precedence over the class parameter xylem.io/member-snapshot-class, which takes precedence
	// over the prefix. If none of these applies, the member's class has the same name.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=host
	SnapshotClasses []ClassMapping `json:"snapshotClasses,omitempty"`

	// reflect publishes classes of the member in the host.
	// +optional
	// +kubebuilder:default={}
	Reflect ReflectSpec `json:"reflect,omitempty"`

	// shared lists the storage backends that this member shares with other members. A claim of one of
	// the listed classes is provisioned once, in one member. Pods in all members that share the
	// backend can use its volume, if the claim has only the access modes ReadWriteMany and
	// ReadOnlyMany. List a backend only if a volume handle of its driver means the same volume in all
	// of these members. A change applies to volumes that are provisioned later.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	Shared []SharedBackend `json:"shared,omitempty"`

	// dataSources lists the kinds of objects from which populators in the member create volumes, such
	// as ReplicationDestination of volsync.backube. Xylem copies such a data source to the leaf claim,
	// where it refers to the member's object with the same namespace and name. Claims and
	// VolumeSnapshots need no entry, because Xylem creates the leaf claim in the member that has the
	// source. Xylem rejects all other kinds.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=apiGroup
	// +listMapKey=kind
	DataSources []DataSourceKind `json:"dataSources,omitempty"`
}

// SharedBackend is a storage backend that several members share.
type SharedBackend struct {
	// name is the name of the backend. All members that share it use the same name. The virtual node
	// gets the label backend.xylem.io/<name>.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// driver is the name of the backend's CSI driver. It must be the same in all members.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Driver string `json:"driver"`
	// classes are the names of the member's StorageClasses that provision on the backend. A copy of a
	// volume gets the mount options and the Secrets of the member's class for the claim.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +listType=set
	Classes []string `json:"classes"`
}

// DataSourceKind is a kind of object from which a populator creates volumes.
// +kubebuilder:validation:XValidation:rule="self.apiGroup != 'snapshot.storage.k8s.io'",message="snapshots need no entry, because Xylem restores a snapshot in the member that has it"
type DataSourceKind struct {
	// apiGroup is the API group of the objects.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	APIGroup string `json:"apiGroup"`
	// kind is the kind of the objects.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`
	Kind string `json:"kind"`
}

// ClassMapping maps one host class to one member class.
type ClassMapping struct {
	// host is the name of the class in the host.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Host string `json:"host"`
	// member is the name of the class in the member.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Member string `json:"member"`
}

// ReflectSpec selects the member's classes that Xylem publishes in the host under the same names.
// Pods that use such a class run only in members that offer it.
type ReflectSpec struct {
	// enabled turns reflection on.
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`
	// selector selects the member's classes by their labels. If empty, it selects all.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn'] ? has(e.values) && size(e.values) > 0 : e.operator in ['Exists', 'DoesNotExist'] && (!has(e.values) || size(e.values) == 0))",message="In and NotIn require values, and Exists and DoesNotExist must have none"
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// max is the maximum number of classes to publish. Already published classes take precedence,
	// followed by new ones in alphabetical order.
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
	// kubernetesVersion is the version of the member's API server.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// nodeName is the name of the virtual node.
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// nodes is the number of virtual nodes, if spec.nodes is set.
	// +optional
	Nodes int32 `json:"nodes,omitempty"`
	// tokenExpires is the time at which the manager's service account token for the member expires. It
	// is not set for other credentials.
	// +optional
	TokenExpires *metav1.Time `json:"tokenExpires,omitempty"`
	// lastRestored is the time at which Xylem last detected that the host or the member was restored from
	// a backup, by the member's clock. It remains after the restore is confirmed.
	// +optional
	LastRestored *metav1.Time `json:"lastRestored,omitempty"`
	// volumes counts the leaf volumes of this host in the member.
	// +optional
	// +kubebuilder:default={}
	Volumes VolumeCounts `json:"volumes,omitzero"`
	// orphans lists up to 32 orphaned volumes, oldest first.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=volume
	Orphans []OrphanedVolume `json:"orphans,omitempty"`
	// snapshots counts the snapshots of this host in the member.
	// +optional
	// +kubebuilder:default={}
	Snapshots SnapshotCounts `json:"snapshots,omitzero"`
	// orphanedSnapshots lists up to 32 orphaned snapshots, oldest first.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=content
	OrphanedSnapshots []OrphanedSnapshot `json:"orphanedSnapshots,omitempty"`
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions describe the state of the member. The types are Connected, NodeReady, Synced,
	// VolumesAccounted, SnapshotsAccounted, DeletionsProgressing, ClassesReflected, TokenFresh,
	// PolicyEnforced, NamespacesAdmitted and Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// VolumeCounts counts leaf volumes by state.
type VolumeCounts struct {
	// bound counts volumes that have a host PV and a live claim.
	// +optional
	// +kubebuilder:default=0
	Bound int32 `json:"bound"`
	// pending counts claims that exist in the member but have no volume yet.
	// +optional
	// +kubebuilder:default=0
	Pending int32 `json:"pending"`
	// deleting counts volumes that are being deleted.
	// +optional
	// +kubebuilder:default=0
	Deleting int32 `json:"deleting"`
	// orphaned counts volumes that have no root. Xylem does not destroy them.
	// +optional
	// +kubebuilder:default=0
	Orphaned int32 `json:"orphaned"`
}

// MaxOrphans is the maximum number of orphaned volumes that a status lists.
const MaxOrphans = 32

// OrphanedVolume is a leaf volume without a root.
type OrphanedVolume struct {
	// volume is the name of the PersistentVolume in the member.
	// +kubebuilder:validation:MaxLength=253
	Volume string `json:"volume"`
	// claim is the host's claim for which the volume was provisioned, <namespace>/<name>. It is
	// empty if the member already had the volume and no claim used it.
	// +kubebuilder:validation:MaxLength=512
	Claim string `json:"claim"`
	// reason is why the volume is orphaned: RootGone, RootReplaced, SurplusVolume or WithdrawnLate.
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`
	// since is the time at which Xylem found the volume.
	Since metav1.Time `json:"since"`
}

// SnapshotCounts counts snapshots by state.
type SnapshotCounts struct {
	// ready counts snapshots that can be restored.
	// +optional
	// +kubebuilder:default=0
	Ready int32 `json:"ready"`
	// pending counts snapshots that are being taken or cannot be used.
	// +optional
	// +kubebuilder:default=0
	Pending int32 `json:"pending"`
	// deleting counts snapshots that are being deleted.
	// +optional
	// +kubebuilder:default=0
	Deleting int32 `json:"deleting"`
	// orphaned counts snapshots that have no content in the host. Xylem does not destroy them.
	// +optional
	// +kubebuilder:default=0
	Orphaned int32 `json:"orphaned"`
}

// OrphanedSnapshot is a snapshot in a member without a VolumeSnapshotContent in the host.
type OrphanedSnapshot struct {
	// content is the name of the VolumeSnapshotContent in the member.
	// +kubebuilder:validation:MaxLength=253
	Content string `json:"content"`
	// snapshot is the host's VolumeSnapshot for which the snapshot was taken, <namespace>/<name>.
	// +kubebuilder:validation:MaxLength=512
	Snapshot string `json:"snapshot"`
	// reason is why the snapshot is orphaned: RootGone or RootReplaced.
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`
	// since is the time at which Xylem found the snapshot.
	Since metav1.Time `json:"since"`
}

// ClusterRegistration registers a cluster as a member. A member runs Pods of the host and
// provisions the disks for their claims.
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
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 56",message="the name must have no more than 56 characters, because it is used in the node name and as a label value"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.nodes) || size(self.spec.nodes) == 0 || (has(self.spec.node.name) ? size(self.spec.node.name) : size(self.metadata.name) + 7) <= 40",message="with spec.nodes, the name of spec.node (kosmos-<registration> by default) must have no more than 40 characters, because it is the last part of each virtual node's name"
type ClusterRegistration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClusterRegistrationSpec   `json:"spec"`
	Status ClusterRegistrationStatus `json:"status,omitempty"`
}

// NodeName returns the name of the registration's virtual node.
func (r *ClusterRegistration) NodeName() string {
	if r.Spec.Node.Name != "" {
		return r.Spec.Node.Name
	}
	return DefaultNodeNamePrefix + r.Name
}

// HasNode reports whether a Node with this name represents the member, or a group of its nodes.
func (r *ClusterRegistration) HasNode(name string) bool { return IsNodeOfMember(name, r.NodeName()) }

// GroupNodeName returns the name of the virtual node of a group, which contains no dot, in the member
// with the given node name.
func GroupNodeName(group, memberNode string) string { return group + "." + memberNode }

// MemberNodeOf returns the node name of the member to which a virtual node of a group belongs, if name is the
// name of such a node.
func MemberNodeOf(name string) (memberNode string, found bool) {
	group, memberNode, found := strings.Cut(name, ".")
	return memberNode, found && group != "" && memberNode != ""
}

// IsNodeOfMember reports whether name is the node name of a member, or of a group of its nodes.
func IsNodeOfMember(name, memberNode string) bool {
	if name == memberNode {
		return name != ""
	}
	of, found := MemberNodeOf(name)
	return found && of == memberNode
}

// Taints returns the taints of the registration's virtual node, which are the default one if spec.node has
// none.
func (r *ClusterRegistration) Taints() []corev1.Taint {
	if r.Spec.Node.Taints == nil {
		return []corev1.Taint{{Key: DefaultTaintKey, Value: "true", Effect: corev1.TaintEffectNoSchedule}}
	}
	var taints []corev1.Taint
	for _, t := range *r.Spec.Node.Taints {
		taints = append(taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
	}
	return taints
}

// WhenAway returns the policy for the registration's Pods while its member is away.
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
