package v1alpha1

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Prefix is the prefix of all of Xylem's labels, annotations, finalizers, parameters and condition
// types. The host's admission policy reserves it for the manager.
const Prefix = "xylem.io/"

// MovePrefix is the prefix of the labels and annotations of `kubectl xylem move`. The plugin writes
// them with the user's permissions, so no controller reads them.
const MovePrefix = "move.xylem.io/"

// Names that Xylem uses in fields of Kubernetes objects.
const (
	// ProvisionerName is the provisioner of the host's storage classes, the driver of the host PVs
	// that mirror a leaf volume, and the name of the CSIDriver object. No CSI driver runs under
	// this name in the host.
	ProvisionerName = "csi.xylem.io"

	// PromiseDriverName is the driver of a promise ("mock" volume).
	PromiseDriverName = "mock.csi.virtual-kubelet.io"

	// EndpointSliceManager is the value of the label endpointslice.kubernetes.io/managed-by on the
	// EndpointSlices that Xylem creates in members, which the member's own controllers therefore leave alone.
	EndpointSliceManager = "xylem.io"

	// ManagedByValue is the value of LabelManagedBy on everything that Xylem creates.
	ManagedByValue = "xylem"

	// DefaultNodeNamePrefix, followed by a registration's name, is the default name of its virtual
	// node.
	DefaultNodeNamePrefix = "kosmos-"

	// NamespacePolicy is the name of the host's admission policy that rejects bindings to members
	// that do not admit the Pod's namespace.
	NamespacePolicy = "xylem-namespaces"

	// DefaultTaintKey is the key of the virtual nodes' default taint. Its value is "true" and its
	// effect is NoSchedule.
	DefaultTaintKey = "kosmos.io/node"

	// DefaultClassPrefix is the default prefix of host class names. The rest of the name is the
	// member's class.
	DefaultClassPrefix = "virtual-disk-"

	// AllPodCIDRs represents all addresses: in a registration's spec.node.podCIDRs, it makes the host show all
	// Pod IPs.
	AllPodCIDRs = "all"

	// KubeconfigKey is the key of the kubeconfig in a registration's Secret.
	KubeconfigKey = "kubeconfig"

	// DefaultNamespace contains the manager, its Secrets and its records in the host, and
	// its fence in a member.
	DefaultNamespace = "xylem-system"

	// LeaderLease is the Lease in the manager's namespace that the leading replica holds.
	LeaderLease = "xylem-manager"
)

// Labels.
const (
	// LabelManagedBy is the recommended Kubernetes label for the tool that manages an object.
	LabelManagedBy = "app.kubernetes.io/managed-by"

	// LabelHost is the host's cluster ID, on every leaf object that Xylem created. A member's admin
	// sets it on a namespace or volume that the host may use.
	LabelHost = Prefix + "host"

	// LabelCluster is the registration's name, on virtual nodes and host PVs.
	LabelCluster = Prefix + "cluster"

	// LabelClusterID is the member's cluster ID, on virtual nodes and host PVs.
	LabelClusterID = Prefix + "cluster-id"

	// LabelOfferedByPrefix, followed by a registration's name, is the key of a label with value
	// "true" on each host class that was reflected from that member. `kubectl get storageclass -l
	// offered-by.xylem.io/cluster38=true` lists them. A registration name must therefore be a valid
	// label name with no more than 56 characters.
	LabelOfferedByPrefix = "offered-by.xylem.io/"

	// LabelVirtualNode is "true" on virtual nodes.
	LabelVirtualNode = Prefix + "virtual-node"

	// LabelBackendPrefix, followed by the name of a storage backend, is the key of an empty label on
	// the virtual nodes of the members that share the backend. The node affinity of a shared volume's
	// host PV selects the nodes with this label.
	LabelBackendPrefix = "backend.xylem.io/"

	// LabelNodeGroup, on the virtual nodes of a member with spec.nodes, is the first part of the node's name: the
	// group's name, or the value or node for which it was created.
	LabelNodeGroup = Prefix + "node-group"

	// LabelTopologyPrefix, followed by the name of a volume topology, is the key of an empty label on the virtual
	// nodes of a member with spec.nodes: at least one of the node's group can use volumes with this topology. The node
	// affinity of such a volume's host PV selects the nodes with this label.
	LabelTopologyPrefix = Prefix + "topology-"
)

// Annotations.
const (
	// AnnotationRoot, on leaf objects, is the <namespace>/<name> of the root, or its name if it is
	// cluster-scoped.
	AnnotationRoot = Prefix + "root"

	// AnnotationRootUID, on leaf objects, is the UID of the root.
	AnnotationRootUID = Prefix + "root-uid"

	// AnnotationCopyOf, on the PV and the claim that Xylem creates in a member as a copy of a shared
	// volume of another member, is the name of the host PV. AnnotationCopyOfUID is its UID.
	// AnnotationCopyFor is the UID of the host's claim. A copy has no other stamp, so that only the
	// controllers of copies act on it.
	AnnotationCopyOf    = Prefix + "copy-of"
	AnnotationCopyOfUID = Prefix + "copy-of-uid"
	AnnotationCopyFor   = Prefix + "copy-for"

	// AnnotationReflect, with the value "false" on a Service in the host, keeps Xylem from creating the Service
	// in members.
	AnnotationReflect = Prefix + "reflect"

	// AnnotationPlacedIn, on root claims, is the cluster ID of the only member that may have a
	// volume for the claim. On VolumeSnapshotContents in the host, it is the cluster ID of the
	// member that has, or may have, the snapshot.
	AnnotationPlacedIn = Prefix + "placed-in"

	// AnnotationNamespaceRules, on the CSIDriver csi.xylem.io, contains spec.namespaces of all
	// registrations for the policies xylem-namespaces, which are then evaluated once for each request, and not
	// once for each registration.
	AnnotationNamespaceRules = Prefix + "namespace-rules"

	// AnnotationSteeredTo, on root claims, is the virtual node that Xylem wrote to selected-node after
	// a member failed, or to select a member that can use the claim's data source.
	AnnotationSteeredTo = Prefix + "steered-to"

	// AnnotationTried, on root claims that at least one member could not satisfy, lists these members,
	// their messages, and when Xylem may try the next one, as JSON.
	AnnotationTried = Prefix + "tried"

	// AnnotationSource, on root claims with a data source, is <member cluster ID>/<UID of the source
	// claim or snapshot>, once Xylem has selected that member. On leaf claims, the value is only the
	// UID. On VolumeSnapshotContents in the host, it is the driver's handle of the disk of which the
	// snapshot is to be taken.
	AnnotationSource = Prefix + "source"

	// AnnotationReportedBy, on root claims with the condition Placed and root Pods with the condition
	// Pushed, is the cluster ID of the member that the condition is about. If a Pod's condition
	// repeats a claim's problem, a slash and the claim's name follow. Xylem writes it in the same
	// request as the condition.
	AnnotationReportedBy = Prefix + "reported-by"

	// AnnotationLeafUID, on root Pods with the condition Pushed, is the UID of the leaf Pod that runs
	// or ran. Such a Pod never gets another leaf. Xylem writes it in the same request as the
	// condition, and clears it if it withdraws the leaf before the host binds the Pod. It has no
	// meaning without the condition, or if it is empty.
	AnnotationLeafUID = Prefix + "leaf-uid"

	// AnnotationReclaimPolicy, on stamped leaf PVs, is their original reclaim policy in the member.
	// While in use, they have policy Retain.
	AnnotationReclaimPolicy = Prefix + "reclaim-policy"

	// AnnotationLastClaimLost, on a host PV, is the UID of the claim that used the volume last and that the
	// host may have lost when it was restored. Xylem then set the policy to Retain, and does not do so
	// again if an admin sets it to Delete.
	AnnotationLastClaimLost = Prefix + "last-claim-lost"

	// AnnotationVolumeUID, on leaf claims that were created for an existing volume, is the UID of
	// that PV. Xylem sets it when the PV's claimRef refers to the claim, so that the member's PV
	// controller enqueues the claim again.
	AnnotationVolumeUID = Prefix + "volume-uid"

	// AnnotationAttributesClasses, on leaf claims, is a JSON object that maps each of the member's
	// VolumeAttributesClasses that Xylem set to its host class. Xylem uses it to translate the class
	// in the status.
	AnnotationAttributesClasses = Prefix + "attributes-classes"

	// AnnotationPushed, on leaf Pods and leaf claims, contains the values of the mutable fields that Xylem
	// pushed, to distinguish the root's changes from the member's.
	AnnotationPushed = Prefix + "pushed"

	// AnnotationNodeSpec, on virtual nodes, contains the labels and taints that the registration last
	// requested, so that Xylem can remove those that it no longer requests.
	AnnotationNodeSpec = Prefix + "node-spec"

	// AnnotationNodeSelector, on the virtual nodes of a member with spec.nodes, is the NodeSelectorTerm that selects
	// the group's nodes in the member, as JSON. Leaf Pods require it.
	AnnotationNodeSelector = Prefix + "node-selector"

	// AnnotationMockPV is "true" on promise volumes.
	AnnotationMockPV = "virtual-kubelet.io/mock-pv"

	// AnnotationVolume, on a fulfilled promise, is <member cluster ID>/<leaf PV name>, as in the
	// volume handle of a mirrored volume. On promises, AttributeLeafUID, AttributeDriver and
	// AttributeHandle are annotations too, because the source of a PV is immutable.
	AnnotationVolume = Prefix + "volume"

	// AnnotationConsumer, on a promise that was placed in a member, is the <namespace>/<name>/<UID> of
	// the Pod for which the disk is provisioned.
	AnnotationConsumer = Prefix + "consumer"

	// AnnotationUnusedSince, on a fulfilled promise with ReleaseWhenUnused, is the time since which
	// no Pod has used it (RFC 3339).
	AnnotationUnusedSince = Prefix + "unused-since"

	// AnnotationReleasing, on a fulfilled promise with ReleaseWhenUnused whose disk is being
	// destroyed, is the UID of the leaf PV. Until the disk is destroyed, Xylem does not push Pods
	// that use the promise.
	AnnotationReleasing = Prefix + "releasing"

	// AnnotationAbandon, "true" on a host PV, abandons the leaf volume: Xylem no longer tracks it
	// and keeps its data. It has the same effect on a VolumeSnapshotContent in the host. On an
	// abandoned promise that another member may fulfill, the value is the previous member's cluster
	// ID.
	AnnotationAbandon = Prefix + "abandon"

	// AnnotationTokenLifetime on a registration's Secret makes the manager renew the service
	// account token in its kubeconfig. The value is the lifetime of each new token, a Go duration.
	// The Secret must have the label LabelManagedBy=ManagedByValue, which kubectl xylem register
	// sets.
	AnnotationTokenLifetime = Prefix + "token-lifetime"

	// AnnotationForceDeregister, "true" on a ClusterRegistration that is being deleted, abandons
	// its member without contacting it.
	AnnotationForceDeregister = Prefix + "force-deregister"

	// AnnotationConfirmDeregister, set to the registration's name, confirms a
	// deletion while Pods still run in the member.
	AnnotationConfirmDeregister = Prefix + "confirm-deregister"

	// AnnotationConfirmRestore on a ClusterRegistration confirms that Xylem may destroy volumes
	// again after one of the two clusters was restored from an older state. The message of the
	// Connected condition shows the required value.
	AnnotationConfirmRestore = Prefix + "confirm-restore"

	// AnnotationFenceEpoch, on the fence Lease in a member and on its record in the host, is the
	// number of the leadership term that last held the Lease.
	AnnotationFenceEpoch = Prefix + "fence-epoch"

	// AnnotationRegistration, on the host's record of a member, is the UID of that cluster's
	// registration. While that registration exists, Xylem rejects any other registration of the
	// cluster.
	AnnotationRegistration = Prefix + "registration"

	// AnnotationRestored, on the host's record of a member's fence and on the fence Lease in the
	// member, is the time at which the member was last restored from an older state (RFC 3339, by the
	// member's clock).
	AnnotationRestored = Prefix + "restored"

	// AnnotationHostRestored, on the host's record of a member's fence, is the time at which the host
	// was last restored from an older state (RFC 3339, by the member's clock).
	AnnotationHostRestored = Prefix + "host-restored"

	// AnnotationLetGo, on the host's record of a member's fence, contains a line for each object that
	// an admin abandoned in the member, or whose disk may still exist although the restored member lost
	// its objects, with the time.
	AnnotationLetGo = Prefix + "let-go"

	// AnnotationWithdrawn, on the host's record of a member and on the host's fence in that member,
	// lists the leaf claims that Xylem withdrew while a provisioner might still have been provisioning
	// a volume that outlives the claim. The fence lists only their UIDs.
	AnnotationWithdrawn = Prefix + "withdrawn"

	// AnnotationNamespaceUID, on stamped leaf PVs, is the UID of the root's namespace in the host.
	// It shows whether a later claim of the same name belongs to the same tenant.
	AnnotationNamespaceUID = Prefix + "root-namespace-uid"

	// AnnotationAdopt on a ClusterRegistration allows claims to use orphaned volumes of that member
	// through spec.volumeName, even if the namespace was re-created or the volume was abandoned.
	// The value is a comma-separated list of the member's volumes, or * for all.
	AnnotationAdopt = Prefix + "adopt"

	// AnnotationDeletionPolicy, on stamped VolumeSnapshotContents in a member, is their original
	// deletion policy. While in use, they have policy Retain.
	AnnotationDeletionPolicy = Prefix + "deletion-policy"

	// AnnotationLeafSnapshotUID, on VolumeSnapshotContents in the host, is the UID of the
	// VolumeSnapshot that Xylem created for them in the member. The member's snapshot-controller
	// derives the name of the snapshot's content from this UID.
	AnnotationLeafSnapshotUID = Prefix + "leaf-snapshot-uid"

	// AnnotationCapacityEstimated is "true" on CSIStorageCapacities in the host for a member's
	// class whose driver publishes no capacity. This capacity is an estimate, based on the other
	// members or on a size that the driver rejected. The scheduler uses the estimate only to rank
	// members: it excludes members by maximumVolumeSize.
	AnnotationCapacityEstimated = Prefix + "capacity-estimated"

	// LabelMove is the move's ID, on the claim, Pods and ConfigMap that `kubectl xylem move` creates.
	// As an annotation, it is on the moved claim, and on the volumes in the host whose reclaim policy the
	// command set to Retain.
	LabelMove = MovePrefix + "id"

	// AnnotationMoveClaim is the <namespace>/<name> of the moved claim, on the claim and Pods that
	// `kubectl xylem move` creates, and on the volumes in the host that the command keeps: the moved
	// claim's old volume, or a copy.
	AnnotationMoveClaim = MovePrefix + "claim"

	// AnnotationMoveRun, on a claim whose move was undone before the claim was deleted, is the ID of
	// the command's run. Setting it changes the claim's resourceVersion, so a delayed deletion by an
	// earlier run fails.
	AnnotationMoveRun = MovePrefix + "run"

	// AnnotationMovePolicy, on a volume in the host whose reclaim policy `kubectl xylem move` set to
	// Retain, is the policy that the volume had before.
	AnnotationMovePolicy = MovePrefix + "reclaim-policy"

	// AnnotationMoveRestores, on a volume in the host that a move keeps, is the UID of its member's
	// registration, and the last restore that an admin had confirmed for it (AnnotationConfirmRestore)
	// when the move began. If either has changed since, the volume may have the newest data.
	AnnotationMoveRestores = MovePrefix + "restores"

	// AnnotationClusterGone, on host PVs and VolumeSnapshotContents whose member was deregistered, is
	// the name of the member's registration.
	AnnotationClusterGone = Prefix + "cluster-gone"
)

// Finalizers.
const (
	// FinalizerLeafVolume keeps a host PV until its leaf volume is destroyed, retained or
	// abandoned.
	FinalizerLeafVolume = Prefix + "leaf-volume"

	// FinalizerCopyPrefix, followed by a member's cluster ID, is a finalizer of a shared volume's host
	// PV. Xylem adds it before it creates a copy of the volume in that member, and removes it once the
	// copy is gone. Until then, the volume is not destroyed.
	FinalizerCopyPrefix = "copy.xylem.io/"

	// FinalizerRegistration keeps a ClusterRegistration until its member is deregistered cleanly.
	FinalizerRegistration = Prefix + "registration"
)

// Volume attributes of a host PV that mirrors a leaf volume, and annotations of a
// VolumeSnapshotContent in the host that represents a snapshot in a member. On a PV that an admin
// created for an existing volume of the member, they are annotations that only Xylem writes.
const (
	// AttributeDriver is the CSI driver (or volume plugin) behind the leaf object.
	AttributeDriver = Prefix + "driver"
	// AttributeHandle is the leaf object's handle.
	AttributeHandle = Prefix + "handle"
	// AttributeShared contains the leaf PV's CSI attributes as JSON, on the host PV of a shared volume.
	AttributeShared = Prefix + "shared-attributes"
	// AttributeLeafUID is the UID of the leaf PV, or of the leaf content.
	AttributeLeafUID = Prefix + "leaf-uid"
	// AttributeProvisionedFor is the UID of the claim for which the member provisioned the leaf PV, if the
	// claim may be bound only to a new volume (`kubectl xylem move`). A host PV lacks it if its leaf PV
	// existed before the leaf claim, and may have earlier data.
	AttributeProvisionedFor = Prefix + "provisioned-for"
)

// StorageClass parameters, and their values.
const (
	ParameterProvisioning = Prefix + "provisioning"
	ParameterMemberClass  = Prefix + "member-class"
	ParameterRelease      = Prefix + "release"

	// ParameterMemberAttributesClass is a parameter of VolumeAttributesClasses that names the
	// member's class.
	ParameterMemberAttributesClass = Prefix + "member-attributes-class"

	// ParameterMemberSnapshotClass is a parameter of VolumeSnapshotClasses that names the member's
	// class.
	ParameterMemberSnapshotClass = Prefix + "member-snapshot-class"

	// ParameterReleaseGrace is how long Xylem keeps a disk after its last Pod has ended, as a Go
	// duration. It applies if the class's ParameterRelease is ReleaseWhenUnused.
	ParameterReleaseGrace = Prefix + "release-grace"

	// ParameterPlacementTimeout is how long a member may fail to satisfy a claim of the class before
	// Xylem tries another member, as a Go duration.
	ParameterPlacementTimeout = Prefix + "placement-timeout"

	ProvisioningMirror  = "mirror"
	ProvisioningPromise = "promise"

	ReleaseOnClaimDeletion = "OnClaimDeletion"
	ReleaseWhenUnused      = "WhenUnused"
)

// PodPushed shows whether Xylem pushed a root Pod, and where. It is False, with a reason, if Xylem
// cannot push the Pod.
const PodPushed corev1.PodConditionType = Prefix + "Pushed"

// PodPlaceable shows, while it is False, why a root Pod is unschedulable that uses a claim of one of
// Xylem's classes, or that a rule such as anti-affinity keeps off virtual nodes. It exists only while there
// is something to report.
const PodPlaceable corev1.PodConditionType = Prefix + "Placeable"

// PodAPIAccess shows, while it is False, why a root Pod's token for the host's API server is missing in the member or is
// not renewed. It exists only after a problem.
const PodAPIAccess corev1.PodConditionType = Prefix + "APIAccess"

// NodeMemberAway is True, with the cause, once the member of a virtual node has been away for
// longer than the node's grace period. The Node may still be Ready.
const NodeMemberAway corev1.NodeConditionType = Prefix + "MemberAway"

// NodeCSINode is False while the host's scheduler finds no CSINode that Xylem created for a virtual
// node. It exists only while there is something to report.
const NodeCSINode corev1.NodeConditionType = Prefix + "CSINode"

// TaintMemberAway is the key of the NoSchedule taint of a virtual node whose member is away and
// whose registration keeps the Pods.
const TaintMemberAway = Prefix + "member-away"

// ClaimPlaced shows, while it is False, why Xylem cannot push a root claim to its member, and what
// to do. It exists only while there is something to report.
const ClaimPlaced corev1.PersistentVolumeClaimConditionType = Prefix + "Placed"

// ClaimPlaceable shows, while it is False, why no member can be selected for a root claim. It
// exists only while there is something to report.
const ClaimPlaceable corev1.PersistentVolumeClaimConditionType = Prefix + "Placeable"

// ClaimPromise shows whether the disk of a root claim that is bound to a promise exists. It is True
// if it does (ReasonFulfilled), otherwise False with ReasonBroken, or with ReasonPromised after a
// few seconds.
const ClaimPromise corev1.PersistentVolumeClaimConditionType = Prefix + "Promise"

// ClaimAttached shows whether the volume of a root claim is attached to a node in the member. It is
// True if the volume is attached, False if it is not or if the driver reports an error, and Unknown
// while Xylem cannot read the member. Claims of drivers that do not attach volumes do not have it.
const ClaimAttached corev1.PersistentVolumeClaimConditionType = Prefix + "Attached"

// Reserved reports whether a label, annotation or taint key is Xylem's own.
func Reserved(key string) bool { return strings.HasPrefix(key, Prefix) }
