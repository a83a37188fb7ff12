package v1alpha1

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Prefix starts each of Xylem's own labels, annotations, finalizers, parameters and
// condition types. The host's admission policy reserves it for the manager.
const Prefix = "xylem.io/"

// Names of Xylem in Kubernetes' own fields.
const (
	// ProvisionerName is the provisioner of the host's storage classes, the
	// driver of the host PVs that mirror a leaf volume, and the name of the
	// CSIDriver object. Nothing runs under it in the host.
	ProvisionerName = "csi.xylem.io"

	// PromiseDriverName is the driver of a promise ("mock" volume).
	PromiseDriverName = "mock.csi.virtual-kubelet.io"

	// ManagedByValue is the value of LabelManagedBy on everything that Xylem creates.
	ManagedByValue = "xylem"

	// DefaultNodeNamePrefix, followed by a registration's name, is the default name of its
	// node.
	DefaultNodeNamePrefix = "kosmos-"

	// NamespacePolicy is the name of the admission policy of the host that rejects bindings to
	// members that do not admit the Pod's namespace.
	NamespacePolicy = "xylem-namespaces"

	// DefaultTaintKey is the key of the default taint of virtual nodes; its value is
	// "true", its effect NoSchedule.
	DefaultTaintKey = "kosmos.io/node"

	// DefaultClassPrefix is the default prefix of host class names; the rest is the member
	// class's name.
	DefaultClassPrefix = "virtual-disk-"

	// AllPodCIDRs in a registration's spec.node.podCIDRs shows all Pod addresses.
	AllPodCIDRs = "all"

	// KubeconfigKey is the key of a registration's Secret.
	KubeconfigKey = "kubeconfig"

	// DefaultNamespace contains the manager, its Secrets and its records in the host, and
	// its fence in a member.
	DefaultNamespace = "xylem-system"

	// LeaderLease is the Lease in the manager's namespace that the leading replica holds.
	LeaderLease = "xylem-manager"
)

// Labels.
const (
	// LabelManagedBy names what manages an object (Kubernetes' recommended label).
	LabelManagedBy = "app.kubernetes.io/managed-by"

	// LabelHost is on every leaf object that Xylem created: the host's cluster ID. An admin of
	// a member sets it on a namespace, or on a volume, that the host may have.
	LabelHost = Prefix + "host"

	// LabelCluster is on virtual nodes and host PVs: the registration's name.
	LabelCluster = Prefix + "cluster"

	// LabelClusterID is on virtual nodes and host PVs: the member's cluster ID.
	LabelClusterID = Prefix + "cluster-id"

	// LabelOfferedByPrefix and a registration's name are the label, "true", on a class
	// of the host that was reflected from its member: `kubectl get storageclass -l
	// offered-by.xylem.io/cluster38=true` lists them. A name has 56 characters at
	// most, and of those that a label may have.
	LabelOfferedByPrefix = "offered-by.xylem.io/"

	// LabelVirtualNode is "true" on virtual nodes.
	LabelVirtualNode = Prefix + "virtual-node"
)

// Annotations.
const (
	// AnnotationRoot is on leaf objects: <namespace>/<name> of the root, or its name if it
	// has no namespace.
	AnnotationRoot = Prefix + "root"

	// AnnotationRootUID is on leaf objects: the UID of the root.
	AnnotationRootUID = Prefix + "root-uid"

	// AnnotationPlacedIn is on root claims: the cluster ID of the only member that may
	// have a volume for them. On VolumeSnapshotContents of the host: the cluster ID of the
	// member that has, or may have, their snapshot.
	AnnotationPlacedIn = Prefix + "placed-in"

	// AnnotationSteeredTo is on root claims that Xylem reassigned to another member than
	// the one that failed them, or assigned to the one that has their data source: the
	// virtual node in the rewritten selected-node.
	AnnotationSteeredTo = Prefix + "steered-to"

	// AnnotationTried is on root claims that some member could not satisfy: which members,
	// their messages, and when the next may be tried, as JSON.
	AnnotationTried = Prefix + "tried"

	// AnnotationSource is on root claims with a data source: <member cluster ID>/<UID of the
	// claim or snapshot> that they are created from, from when Xylem has chosen that member.
	// On their leaf claims it is the UID alone.
	AnnotationSource = Prefix + "source"

	// AnnotationReportedBy is on root claims with the condition Placed and on root Pods
	// with the condition Pushed: the cluster ID of the member that the condition is about.
	// If a Pod's condition repeats a claim's problem, a slash and the claim's name follow.
	// One request writes it together with the condition.
	AnnotationReportedBy = Prefix + "reported-by"

	// AnnotationLeafUID is on root Pods whose condition Pushed is True: the UID of the Pod
	// that runs for them in the member. One request writes it together with the condition.
	AnnotationLeafUID = Prefix + "leaf-uid"

	// AnnotationReclaimPolicy is on stamped leaf PVs: the reclaim policy that the member
	// had given them. While in use, they have policy Retain.
	AnnotationReclaimPolicy = Prefix + "reclaim-policy"

	// AnnotationVolumeUID is on leaf claims that were created for an existing volume: the
	// UID of that PV. Xylem sets it when the PV's claimRef names the claim, so that the
	// member's PV controller queues the claim again.
	AnnotationVolumeUID = Prefix + "volume-uid"

	// AnnotationAttributesClasses is on leaf claims: which VolumeAttributesClass of the host
	// each one of the member that Xylem set stands for, as a JSON object. A status that names
	// the member's class shows the host's by it.
	AnnotationAttributesClasses = Prefix + "attributes-classes"

	// AnnotationPushed is on leaf Pods: what Xylem pushed of the mutable fields, to
	// distinguish the root's changes from the member's.
	AnnotationPushed = Prefix + "pushed"

	// AnnotationNodeSpec is on virtual nodes: the labels and taints that their
	// registration asked for last, so that Xylem removes those that it no longer asks for.
	AnnotationNodeSpec = Prefix + "node-spec"

	// AnnotationMockPV is "true" on promise volumes.
	AnnotationMockPV = "virtual-kubelet.io/mock-pv"

	// AnnotationVolume is on a fulfilled promise: <member cluster ID>/<leaf PV name>, as
	// in the volume handle of a mirrored volume. AttributeLeafUID, AttributeDriver and
	// AttributeHandle are annotations there, since the source of a PV is immutable.
	AnnotationVolume = Prefix + "volume"

	// AnnotationConsumer is on a promise that a member has: the Pod that its disk is
	// provisioned for, <namespace>/<name>/<UID>.
	AnnotationConsumer = Prefix + "consumer"

	// AnnotationUnusedSince is on a fulfilled promise of ReleaseWhenUnused: since when
	// no Pod uses it (RFC 3339).
	AnnotationUnusedSince = Prefix + "unused-since"

	// AnnotationReleasing is on a fulfilled promise of ReleaseWhenUnused whose disk is
	// being destroyed: the UID of the leaf PV. No Pod is pushed for it meanwhile.
	AnnotationReleasing = Prefix + "releasing"

	// AnnotationAbandon, "true" on a host PV, abandons the leaf volume: Xylem forgets it
	// and keeps its data. So it does on a VolumeSnapshotContent of the host. An abandoned promise that another member may fulfill has the ID
	// of the cluster that had it instead.
	AnnotationAbandon = Prefix + "abandon"

	// AnnotationTokenLifetime on a registration's Secret makes the manager renew the
	// service account's token in its kubeconfig: the lifetime of each new one, a Go
	// duration. The Secret must have the label LabelManagedBy=ManagedByValue, as kubectl
	// xylem register sets it.
	AnnotationTokenLifetime = Prefix + "token-lifetime"

	// AnnotationForceDeregister, "true" on a ClusterRegistration under deletion, abandons
	// its member without reaching it.
	AnnotationForceDeregister = Prefix + "force-deregister"

	// AnnotationConfirmDeregister, set to the registration's name, confirms a
	// deletion while Pods still run in the member.
	AnnotationConfirmDeregister = Prefix + "confirm-deregister"

	// AnnotationConfirmRestore on a ClusterRegistration confirms, with the value that its
	// Connected condition names, that Xylem may destroy again after one of the two
	// clusters was restored from an older state.
	AnnotationConfirmRestore = Prefix + "confirm-restore"

	// AnnotationFenceEpoch is on the fence Lease in a member and on its record
	// in the host: the number of the leadership that last held it.
	AnnotationFenceEpoch = Prefix + "fence-epoch"

	// AnnotationRegistration is on the host's record of a member: the UID of the
	// registration that has the cluster. While that one exists, any other is rejected.
	AnnotationRegistration = Prefix + "registration"

	// AnnotationRestored is on the host's record of a member's fence, and on the fence
	// Lease in the member: when the member was last restored from an older state (RFC
	// 3339, by the member's clock).
	AnnotationRestored = Prefix + "restored"

	// AnnotationHostRestored is on the host's record of a member's fence: when the host
	// was last restored from an older state (RFC 3339, by the member's clock).
	AnnotationHostRestored = Prefix + "host-restored"

	// AnnotationLetGo is on the host's record of a member's fence: a line for each thing
	// that an admin abandoned there, with the time.
	AnnotationLetGo = Prefix + "let-go"

	// AnnotationWithdrawn is on the host's record of a member, and on the host's fence in
	// that member: the leaf claims that were withdrawn while a provisioner may have been
	// provisioning a volume that outlives its claim. The fence has only their UIDs.
	AnnotationWithdrawn = Prefix + "withdrawn"

	// AnnotationNamespaceUID is on stamped leaf PVs: the UID of the root's namespace in
	// the host. It shows whether a later claim of the same name is the same tenant's.
	AnnotationNamespaceUID = Prefix + "root-namespace-uid"

	// AnnotationAdopt on a ClusterRegistration allows claims to get orphaned volumes of
	// that member by spec.volumeName if their namespace was re-created, or the volume was
	// abandoned: names of the member's volumes, separated by commas, or * for all.
	AnnotationAdopt = Prefix + "adopt"

	// AnnotationDeletionPolicy is on stamped VolumeSnapshotContents of a member: the
	// deletion policy that the member had given them. While in use, they have policy
	// Retain.
	AnnotationDeletionPolicy = Prefix + "deletion-policy"

	// AnnotationLeafSnapshotUID is on VolumeSnapshotContents of the host: the UID of the
	// VolumeSnapshot that Xylem created for them in the member. The member's snapshot
	// controller names its content after it.
	AnnotationLeafSnapshotUID = Prefix + "leaf-snapshot-uid"

	// AnnotationCapacityEstimated is "true" on CSIStorageCapacities of the host for a class of a
	// member whose driver reports no capacity. Then capacity is an estimate, from the other members
	// or from a size that the driver rejected. The scheduler ranks members by it, and excludes
	// them by maximumVolumeSize.
	AnnotationCapacityEstimated = Prefix + "capacity-estimated"

	// AnnotationClusterGone is on host PVs, and on VolumeSnapshotContents of the host, whose
	// member was deregistered: the name that it was registered under.
	AnnotationClusterGone = Prefix + "cluster-gone"
)

// Finalizers.
const (
	// FinalizerLeafVolume keeps a host PV until its leaf volume is destroyed, retained or
	// abandoned.
	FinalizerLeafVolume = Prefix + "leaf-volume"

	// FinalizerRegistration keeps a ClusterRegistration until its member is deregistered
	// in order.
	FinalizerRegistration = Prefix + "registration"
)

// Volume attributes of a host PV that mirrors a leaf volume, and annotations of a
// VolumeSnapshotContent of the host that represents a snapshot in a member. On a PV that an
// admin created for a volume that the member has already, they are annotations, which only Xylem
// writes.
const (
	// AttributeDriver is the CSI driver (or volume plugin) behind the leaf object.
	AttributeDriver = Prefix + "driver"
	// AttributeHandle is the handle there.
	AttributeHandle = Prefix + "handle"
	// AttributeLeafUID is the UID of the leaf PV, or of the leaf content.
	AttributeLeafUID = Prefix + "leaf-uid"
)

// StorageClass parameters, and their values.
const (
	ParameterProvisioning = Prefix + "provisioning"
	ParameterMemberClass  = Prefix + "member-class"
	ParameterRelease      = Prefix + "release"

	// ParameterMemberAttributesClass is a parameter of VolumeAttributesClasses.
	ParameterMemberAttributesClass = Prefix + "member-attributes-class"

	// ParameterMemberSnapshotClass of a VolumeSnapshotClass names the member's.
	ParameterMemberSnapshotClass = Prefix + "member-snapshot-class"

	// ParameterReleaseGrace is how long a disk of a class with ParameterRelease
	// ReleaseWhenUnused stays after its last Pod: a Go duration.
	ParameterReleaseGrace = Prefix + "release-grace"

	// ParameterPlacementTimeout is how long a member may fail to satisfy a claim of the
	// class before Xylem tries another one: a Go duration.
	ParameterPlacementTimeout = Prefix + "placement-timeout"

	ProvisioningMirror  = "mirror"
	ProvisioningPromise = "promise"

	ReleaseOnClaimDeletion = "OnClaimDeletion"
	ReleaseWhenUnused      = "WhenUnused"
)

// PodPushed is the condition of a root Pod that says whether, and where, Xylem pushed
// it. It is False, with a reason, if Xylem cannot.
const PodPushed corev1.PodConditionType = Prefix + "Pushed"

// PodPlaceable is the condition of a root Pod that no node was found for and that uses a
// claim of one of our classes: why, while it is False. It is there only while there is
// something to report.
const PodPlaceable corev1.PodConditionType = Prefix + "Placeable"

// NodeMemberAway is the condition of a virtual node that is True while its member is away
// for longer than the node's grace, with the cause. The Node may be Ready anyway.
const NodeMemberAway corev1.NodeConditionType = Prefix + "MemberAway"

// NodeCSINode is the condition of a virtual node that is False while the host's scheduler finds no
// CSINode of Xylem's for the node. It exists only while there is something to report.
const NodeCSINode corev1.NodeConditionType = Prefix + "CSINode"

// TaintMemberAway is the key of the taint, effect NoSchedule, of a virtual node whose member
// is away, where the registration keeps its Pods.
const TaintMemberAway = Prefix + "member-away"

// ClaimPlaced is the condition of a root claim that says, while it is False, why the
// claim cannot be pushed to its member, and what to do. It exists only while there is
// something to report.
const ClaimPlaced corev1.PersistentVolumeClaimConditionType = Prefix + "Placed"

// ClaimPlaceable is the condition of a root claim that says, while it is False, why no
// member can be chosen for it. It exists only while there is something to report.
const ClaimPlaceable corev1.PersistentVolumeClaimConditionType = Prefix + "Placeable"

// ClaimPromise is the condition of a root claim that is bound to a promise: True if
// there is a disk (ReasonFulfilled), otherwise False with ReasonBroken, or with
// ReasonPromised once that has lasted for seconds.
const ClaimPromise corev1.PersistentVolumeClaimConditionType = Prefix + "Promise"

// ClaimAttached is the condition of a root claim whose volume the member attaches to a node
// before a Pod can use it: True if it is attached, False if it is not, or with the driver's
// error, and Unknown while the member cannot be read. Claims whose driver attaches nothing
// do not have it.
const ClaimAttached corev1.PersistentVolumeClaimConditionType = Prefix + "Attached"

// Reserved reports whether a label, annotation or taint key is Xylem's own.
func Reserved(key string) bool { return strings.HasPrefix(key, Prefix) }
