package v1alpha1

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Prefix starts every label, annotation, finalizer, parameter and condition
// type of Xylem's own. The host's admission policy reserves it to the manager.
const Prefix = "xylem.io/"

// Names that stand for Xylem in Kubernetes' own fields.
const (
	// ProvisionerName is the provisioner of the host's storage classes, the
	// driver of the host PVs that mirror a leaf volume, and the name of the
	// CSIDriver object. Nothing runs under it in the host.
	ProvisionerName = "csi.xylem.io"

	// PromiseDriverName is the driver of a promise ("mock") volume.
	PromiseDriverName = "mock.csi.virtual-kubelet.io"

	// ManagedByValue is the value of LabelManagedBy on all that Xylem makes.
	ManagedByValue = "xylem"

	// DefaultNodeNamePrefix and a registration's name make its node's name.
	DefaultNodeNamePrefix = "kosmos-"

	// DefaultTaintKey is the key of the taint that virtual nodes carry unless
	// their registration says otherwise; value "true", effect NoSchedule.
	DefaultTaintKey = "kosmos.io/node"

	// DefaultClassPrefix is what the names of host classes have before the member
	// class's own, unless their registration says otherwise.
	DefaultClassPrefix = "virtual-disk-"

	// AllPodCIDRs in a registration's spec.node.podCIDRs shows all Pod addresses.
	AllPodCIDRs = "all"

	// KubeconfigKey is the key of a registration's Secret.
	KubeconfigKey = "kubeconfig"

	// DefaultNamespace is where the manager, its Secrets and its records live
	// in the host, and its fence in a member.
	DefaultNamespace = "xylem-system"
)

// Labels.
const (
	// LabelManagedBy says who manages an object (Kubernetes' recommended label).
	LabelManagedBy = "app.kubernetes.io/managed-by"

	// LabelHost is on every leaf object of ours: the host's cluster ID.
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
	// AnnotationRoot is on leaf objects: <namespace>/<name> of the root, or
	// its bare name for what has no namespace.
	AnnotationRoot = Prefix + "root"

	// AnnotationRootUID is on leaf objects: the UID of the root.
	AnnotationRootUID = Prefix + "root-uid"

	// AnnotationPlacedIn is on root claims: the cluster ID of the one member
	// that may hold a volume for them.
	AnnotationPlacedIn = Prefix + "placed-in"

	// AnnotationSteeredTo is on root claims that are tried in another member than
	// the one that failed them: the virtual node that selected-node was rewritten to.
	AnnotationSteeredTo = Prefix + "steered-to"

	// AnnotationTried is on root claims that some member failed to meet: which, with
	// what words, and when the next may be tried, as JSON.
	AnnotationTried = Prefix + "tried"

	// AnnotationReportedBy is on root claims with the condition Placed and on root Pods
	// with the condition Pushed: the cluster ID of the member that the condition is
	// about, followed by a slash and the claim's name if a Pod's condition repeats a claim's
	// problem. It is written with the condition, in one request.
	AnnotationReportedBy = Prefix + "reported-by"

	// AnnotationReclaimPolicy is on leaf PVs that we stamped: the reclaim
	// policy that the member had given them. They stand at Retain while in use.
	AnnotationReclaimPolicy = Prefix + "reclaim-policy"

	// AnnotationVolumeUID is on leaf claims that were made for a volume that was
	// there already: the UID of that PV, put on when it points at the claim, so
	// that the member's PV controller looks at the claim again.
	AnnotationVolumeUID = Prefix + "volume-uid"

	// AnnotationPushed is on leaf Pods: what was pushed of the fields that may
	// change afterwards, to tell the root's changes from the member's own.
	AnnotationPushed = Prefix + "pushed"

	// AnnotationNodeSpec is on virtual nodes: the labels and taints that their
	// registration asked for last, so that those it drops are taken off.
	AnnotationNodeSpec = Prefix + "node-spec"

	// AnnotationMockPV is "true" on promise volumes.
	AnnotationMockPV = "virtual-kubelet.io/mock-pv"

	// AnnotationVolume is on a promise that was fulfilled: <member cluster ID>/<leaf
	// PV name>, as the volume handle of a mirrored volume has it. AttributeLeafUID,
	// AttributeDriver and AttributeHandle are annotations there, since the source of
	// a PV cannot change.
	AnnotationVolume = Prefix + "volume"

	// AnnotationConsumer is on a promise that a member has: the Pod that its disk is
	// made for, <namespace>/<name>/<UID>.
	AnnotationConsumer = Prefix + "consumer"

	// AnnotationUnusedSince is on a fulfilled promise of ReleaseWhenUnused: since when
	// no Pod uses it (RFC 3339).
	AnnotationUnusedSince = Prefix + "unused-since"

	// AnnotationReleasing is on a fulfilled promise of ReleaseWhenUnused whose disk is
	// being destroyed: the UID of the leaf PV. No Pod is pushed for it meanwhile.
	AnnotationReleasing = Prefix + "releasing"

	// AnnotationAbandon, "true" on a host PV, lets the leaf volume go: Xylem
	// forgets it and leaves its data. A promise that was let go of, and that another
	// member may fulfil, has the ID of the cluster that it was taken from instead.
	AnnotationAbandon = Prefix + "abandon"

	// AnnotationTokenLifetime on a registration's Secret has the manager renew the
	// service account's token in its kubeconfig: how long each new one is to be valid,
	// a Go duration. The Secret has to be labelled LabelManagedBy=ManagedByValue, as
	// kubectl xylem register does.
	AnnotationTokenLifetime = Prefix + "token-lifetime"

	// AnnotationForceDeregister, "true" on a ClusterRegistration under
	// deletion, lets it go although its member cannot be reached.
	AnnotationForceDeregister = Prefix + "force-deregister"

	// AnnotationConfirmDeregister, set to the registration's name, confirms a
	// deletion while Pods still run in the member.
	AnnotationConfirmDeregister = Prefix + "confirm-deregister"

	// AnnotationConfirmRestore on a ClusterRegistration confirms, by the value
	// that its Connected condition names, that destruction may go on after one
	// of the two clusters was restored from an older state.
	AnnotationConfirmRestore = Prefix + "confirm-restore"

	// AnnotationFenceEpoch is on the fence Lease in a member and on its record
	// in the host: the number of the leadership that last held it.
	AnnotationFenceEpoch = Prefix + "fence-epoch"

	// AnnotationRegistration is on the host's record of a member: the UID of the
	// registration that has the cluster. Any other is refused while that one exists.
	AnnotationRegistration = Prefix + "registration"

	// AnnotationRestored is on the host's record of a member's fence, and on the fence
	// Lease in the member: when the member was last restored from an older state (RFC
	// 3339, by the member's clock).
	AnnotationRestored = Prefix + "restored"

	// AnnotationHostRestored is on the host's record of a member's fence: when the host
	// was last restored from an older state (RFC 3339, by the member's clock).
	AnnotationHostRestored = Prefix + "host-restored"

	// AnnotationLetGo is on the host's record of a member's fence: a line for each
	// thing that an admin made Xylem let go of there, with the time.
	AnnotationLetGo = Prefix + "let-go"

	// AnnotationWithdrawn is on the host's record of a member, and on the host's fence in
	// that member: the leaf claims that were withdrawn while a provisioner may have been
	// making a volume that outlives its claim. The fence has their UIDs alone.
	AnnotationWithdrawn = Prefix + "withdrawn"

	// AnnotationNamespaceUID is on leaf PVs that we stamped: the UID of the host's
	// namespace that the root was in, which says whether a later claim of the same
	// name is the same tenant's.
	AnnotationNamespaceUID = Prefix + "root-namespace-uid"

	// AnnotationAdopt on a ClusterRegistration allows claims to have orphaned
	// volumes of that member by spec.volumeName where their namespace was made anew,
	// or the volume was let go of: names of the member's volumes, separated by
	// commas, or * for all.
	AnnotationAdopt = Prefix + "adopt"

	// AnnotationClusterGone is on host PVs whose member was deregistered: the
	// name that it was registered under.
	AnnotationClusterGone = Prefix + "cluster-gone"
)

// Finalizers.
const (
	// FinalizerLeafVolume holds a host PV until its leaf volume is dealt with.
	FinalizerLeafVolume = Prefix + "leaf-volume"

	// FinalizerRegistration holds a ClusterRegistration until its member has
	// been left in order.
	FinalizerRegistration = Prefix + "registration"
)

// Volume attributes of a host PV that mirrors a leaf volume.
const (
	// AttributeDriver is the CSI driver (or volume plugin) behind the leaf PV.
	AttributeDriver = Prefix + "driver"
	// AttributeHandle is the volume handle there.
	AttributeHandle = Prefix + "handle"
	// AttributeLeafUID is the UID of the leaf PV.
	AttributeLeafUID = Prefix + "leaf-uid"
)

// StorageClass parameters, and their values.
const (
	ParameterProvisioning = Prefix + "provisioning"
	ParameterMemberClass  = Prefix + "member-class"
	ParameterRelease      = Prefix + "release"

	// ParameterReleaseGrace is how long a disk of a class with
	// ParameterRelease ReleaseWhenUnused outlives its last Pod: a Go duration.
	ParameterReleaseGrace = Prefix + "release-grace"

	// ParameterPlacementTimeout is how long a member may fail to meet a claim of
	// the class before another one is tried: a Go duration.
	ParameterPlacementTimeout = Prefix + "placement-timeout"

	ProvisioningMirror  = "mirror"
	ProvisioningPromise = "promise"

	ReleaseOnClaimDeletion = "OnClaimDeletion"
	ReleaseWhenUnused      = "WhenUnused"
)

// PodPushed is the condition of a root Pod that says whether, and where, it
// was pushed; False with a reason when it cannot be.
const PodPushed corev1.PodConditionType = Prefix + "Pushed"

// ClaimPlaced is the condition of a root claim that says, while it is False,
// why the claim cannot be pushed to the member that was chosen for it, and what
// to do. It is there only while there is something to say.
const ClaimPlaced corev1.PersistentVolumeClaimConditionType = Prefix + "Placed"

// ClaimPlaceable is the condition of a root claim that says, while it is False,
// why no member can be chosen for it. It is there only while there is something
// to say.
const ClaimPlaceable corev1.PersistentVolumeClaimConditionType = Prefix + "Placeable"

// ClaimPromise is the condition of a root claim that is bound to a promise: True
// when there is a disk (ReasonFulfilled), else False with ReasonPromised, which is
// said when it has lasted for seconds, or ReasonBroken.
const ClaimPromise corev1.PersistentVolumeClaimConditionType = Prefix + "Promise"

// Reserved reports whether a label, annotation or taint key is Xylem's own.
func Reserved(key string) bool { return strings.HasPrefix(key, Prefix) }
