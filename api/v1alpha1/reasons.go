package v1alpha1

// Every reason of an event, of a condition or of a Pod's status that Xylem writes is
// a constant of this package, and internal/REASONS.md is made of their comments: what
// the reason says, and after "To do:" what the user can do.

// Reasons why a claim is not, or not yet, where it should be. They are those of its
// conditions xylem.io/Placed and xylem.io/Placeable, and of events. Those of a promise
// are told on its Pods too, after the claim's name.
const (
	// ReasonRefusedByMember: the member's API server holds something against what is
	// pushed there: a quota, Pod Security, an admission policy. The message is its own.
	// To do: nothing, if another member suits: it is tried when the class's
	// xylem.io/placement-timeout is over; else change what the message names.
	ReasonRefusedByMember = "RefusedByMember"
	// ReasonNameTaken: the member has an object of that name that is not Xylem's, and
	// leaves it alone; of ConfigMaps and Secrets it is told on the Pods. To do: use
	// another name, or have it removed there.
	ReasonNameTaken = "NameTaken"
	// ReasonClassNotFound: the member has no class that the claim's class means there.
	// To do: make the class there, or map one in the registration (spec.storage).
	ReasonClassNotFound = "MemberClassNotFound"
	// ReasonPodRefused: the member's API server refuses the Pod that the claim waits
	// for. To do: as for RefusedByMember.
	ReasonPodRefused = "PodRefusedByMember"
	// ReasonPodUnschedulable: the member's scheduler finds no node for the Pod, in its
	// words. To do: nothing, if another member suits; else give it room, or the labels
	// that it asks for.
	ReasonPodUnschedulable = "LeafPodUnschedulable"
	// ReasonProvisioningFailed: the member's provisioner says that it failed, in its
	// words. To do: nothing, if another member suits; else see to the driver there.
	ReasonProvisioningFailed = "ProvisioningFailed"
	// ReasonOutOfSpace: the member's driver says that it is out of space. To do: nothing,
	// if another member suits; else make room there.
	ReasonOutOfSpace = "OutOfSpace"
	// ReasonNotScheduled: the claim was sent to another member, and the scheduler does
	// not place its Pod there. To do: nothing, the next member is tried; see the Pod's own
	// events for why.
	ReasonNotScheduled = "NotScheduledThere"
	// ReasonNamespaceConflict: the member's namespace of that name is not this host's to
	// use. To do: have the member's admin label it xylem.io/host=<host cluster ID>, or use
	// another namespace.
	ReasonNamespaceConflict = "NamespaceConflict"
	// ReasonNamespaceTerminating: the member's namespace of that name is being deleted.
	// To do: nothing, it is made anew when it is gone.
	ReasonNamespaceTerminating = "NamespaceTerminating"
	// ReasonNamespaceNotAdmitted: the registration of the member does not admit the
	// namespace. To do: use another namespace, or change spec.namespaces of the
	// registration.
	ReasonNamespaceNotAdmitted = "NamespaceNotAdmitted"
	// ReasonNamespaceReserved: nothing is pushed from, or into, namespaces of a cluster's
	// own (kube-*) and Xylem's. To do: use another namespace.
	ReasonNamespaceReserved = "NamespaceReserved"
	// ReasonMemberAway: the member that was chosen is not connected. To do: what the
	// message says; `kubectl describe clusterregistration` has the cause.
	ReasonMemberAway = "MemberAway"
	// ReasonPlacedElsewhere: another member has, or may have, a volume for the claim. To
	// do: run the Pod there; if that member is lost for good, abandon the volume, or force
	// its registration away, as the message says.
	ReasonPlacedElsewhere = "PlacedElsewhere"
	// ReasonClassKeepsOff: the class's allowedTopologies leave that member out, and
	// something chose its node all the same. To do: make the Pod again on another node, or
	// change the class.
	ReasonClassKeepsOff = "ClassKeepsOff"
	// ReasonClassInvalid: the class has parameters below xylem.io/ that Xylem does not
	// know, or values; told on the class as well. To do: delete the class and make it anew.
	ReasonClassInvalid = "ClassInvalid"
	// ReasonImmediate: a class of Xylem's that mirrors does not wait for a consumer. To do:
	// make it with volumeBindingMode WaitForFirstConsumer, or a promise
	// (xylem.io/provisioning: promise).
	ReasonImmediate = "ImmediateUnsupported"
	// ReasonSelectedNode: a node was selected for the claim that stands for no member. To
	// do: nothing, the selection is taken back; see what binds Pods to that node.
	ReasonSelectedNode = "SelectedNodeNotVirtual"
	// ReasonNoMembers: no cluster is registered. To do: register one.
	ReasonNoMembers = "NoMembers"
	// ReasonNoneConnected: none of the registered clusters is connected. To do: see
	// `kubectl get clusterregistrations` for the causes.
	ReasonNoneConnected = "NoMemberConnected"
	// ReasonNotOffered: a Pod waits, and no member has the class. To do: what the message
	// says of each member.
	ReasonNotOffered = "ClassNotOffered"
	// ReasonDataSourceUnsupported: the claim wants a volume made from another one, a
	// snapshot or a populator. To do: leave it out and copy the data in a Pod.
	ReasonDataSourceUnsupported = "DataSourceUnsupported"
	// ReasonModifyUnsupported: the claim wants another VolumeAttributesClass. To do: set it
	// back; it can be chosen at creation only.
	ReasonModifyUnsupported = "ModifyVolumeUnsupported"
	// ReasonSelectorUnsupported: a promise is asked for with a selector, and has no labels
	// that could be selected. To do: leave spec.selector out.
	ReasonSelectorUnsupported = "SelectorUnsupported"
	// ReasonVolumeNameUnsupported: a promise is asked for by a claim that names a volume.
	// To do: leave spec.volumeName out.
	ReasonVolumeNameUnsupported = "VolumeNameUnsupported"
	// ReasonVolumeLost: the claim is bound to a volume that the member has no more. Nothing
	// new is made in its place. To do: restore the volume there, or delete the claim.
	ReasonVolumeLost = "VolumeLost"
	// ReasonVolumeTerminating: somebody has deleted the claim's volume in the member, or, before
	// the claim was bound to it, its PersistentVolume in the host. While a bound claim uses it,
	// Kubernetes keeps it, and Xylem keeps its disk. To do: copy the data that you need, then
	// delete the claim.
	ReasonVolumeTerminating = "VolumeTerminating"
	// ReasonVolumeReplaced: the member has another volume under the name of the one that the
	// claim is bound to, with another UID. Xylem does not use it, and keeps the data of both.
	// To do: rescue the data that you need in the member, then delete the claim.
	ReasonVolumeReplaced = "VolumeReplaced"
	// ReasonVolumeKept: Xylem does not delete a claim in the member, because a
	// PersistentVolume of the host represents its volume, or may do so; on that
	// PersistentVolume if the claim is gone. To do: what the message says.
	ReasonVolumeKept = "VolumeKept"
	// ReasonVolumeMismatch: the claim and its counterpart are bound to different volumes,
	// another claim in the member uses the volume, somebody removed Xylem's stamp from it,
	// two PersistentVolumes of the host represent it (on one of these if its claim is gone),
	// or the volume that the claim asks for does not suit it. To do: what the message says:
	// find out which one holds the data before you delete either, or ask for what the
	// volume has.
	ReasonVolumeMismatch = "VolumeMismatch"
	// ReasonSurplusVolume: the member has a volume for the claim beside the one that is
	// used. Xylem keeps its data. To do: if nobody needs them, delete the claim that the
	// message names in that member.
	ReasonSurplusVolume = "SurplusVolume"
	// ReasonAmbiguousVolume: several members have a volume of the name that the claim asks
	// for. To do: have all but the right one removed there.
	ReasonAmbiguousVolume = "AmbiguousVolume"
	// ReasonAdoptionUnconfirmed: the volume that the claim names was abandoned, or its
	// namespace re-created; or a member has a volume for the claim where Xylem never placed
	// it. To do: an admin can allow it on the registration, by the annotation
	// xylem.io/adopt; after a restore of the host, confirm that first.
	ReasonAdoptionUnconfirmed = "AdoptionUnconfirmed"
	// ReasonSuspended: something in the member has to be deleted first, and nothing is,
	// since one of the two clusters was restored from an older state. To do: confirm what
	// the registration's Connected condition asks for.
	ReasonSuspended = "DestructionSuspended"
)

// Reasons of the condition xylem.io/Promise of claims.
const (
	// ReasonPromised: no disk yet; one is made where the first Pod lands. To do: nothing.
	ReasonPromised = "Promised"
	// ReasonFulfilled: the disk is there; the message says where. To do: nothing.
	ReasonFulfilled = "Fulfilled"
	// ReasonBroken: a Pod has landed, and the member does not make the disk, or has
	// lost it; the message has its words. To do: as for the reason that it begins with.
	ReasonBroken = "Broken"
)

// Reasons of events that tell what happened to a claim.
const (
	// ReasonVolumeMirrored: the member has made the volume. To do: nothing.
	ReasonVolumeMirrored = "VolumeMirrored"
	// ReasonVolumeMadeAnew: the host's PersistentVolume was gone and stands for the one in
	// the member again, with policy Retain. To do: set Delete if its data are to go with
	// the claim.
	ReasonVolumeMadeAnew = "VolumeMadeAnew"
	// ReasonVolumeAdopted: the claim has the volume that an earlier claim of its name had.
	// To do: nothing.
	ReasonVolumeAdopted = "VolumeAdopted"
	// ReasonExpansionPushed: the member was asked to expand the volume. To do: nothing.
	ReasonExpansionPushed = "ExpansionPushed"
	// ReasonHeldBack: the host's PV controller has many volumes to bind, and claims are placed
	// as fast as it binds them. To do: nothing; if it lasts, see to kube-controller-manager.
	ReasonHeldBack = "HeldBack"
	// ReasonPlacementWithdrawn: the claim was taken back from a member before a volume was
	// bound there. To do: nothing.
	ReasonPlacementWithdrawn = "PlacementWithdrawn"
	// ReasonPlacementMoved: the member could not meet the claim, in its words, and another
	// one is tried; on its Pods too. To do: see to that member, or nothing.
	ReasonPlacementMoved = "PlacementMoved"
	// ReasonPlacementFailed: on Pods. No member could meet its claims, or no other can take
	// them; the message has what each said. A Pod of a promise is failed with it, so that
	// its owner makes it again. To do: see to one of the members.
	ReasonPlacementFailed = "PlacementFailed"
	// ReasonPromiseFulfilled: the disk of a promise was made; on its Pods too. To do:
	// nothing.
	ReasonPromiseFulfilled = "PromiseFulfilled"
	// ReasonPromiseBroken: the claim is Bound to a promise, and the member that is to make
	// the disk does not, or has lost it: its words follow. To do: as for the reason that it
	// begins with.
	ReasonPromiseBroken = "PromiseBroken"
	// ReasonVolumeReleased: no Pod used the promise any more, and its disk is destroyed, as
	// its class says (xylem.io/release: WhenUnused). To do: nothing.
	ReasonVolumeReleased = "VolumeReleased"
)

// Reasons on Pods. They are those of the condition xylem.io/Pushed, and of events. What keeps a Pod's
// claims or its namespace, above, is told on the Pod too.
const (
	// ReasonPushed: the Pod runs, or is about to, in the member; the message has the UID of
	// its counterpart. To do: nothing.
	ReasonPushed = "Pushed"
	// ReasonWithdrawn: it was taken back from the member, and why. To do: nothing.
	ReasonWithdrawn = "Withdrawn"
	// ReasonDaemonSet: Pods of DaemonSets are not pushed. To do: run one in the member, or
	// keep the DaemonSet off nodes labelled xylem.io/virtual-node=true.
	ReasonDaemonSet = "DaemonSetNotPushed"
	// ReasonClaimNotBound: the Pod was bound to the node by hand, and a claim of it is not
	// bound. To do: let the scheduler place it.
	ReasonClaimNotBound = "ClaimNotBound"
	// ReasonClaimForeign: the claim that the Pod's ephemeral volume needs is there already,
	// and is not the Pod's. To do: remove that claim, or rename the Pod.
	ReasonClaimForeign = "ClaimNotOfPod"
	// ReasonVolumeUnreachable: the Pod was bound to a node that its volumes cannot be
	// reached from. To do: let the scheduler place it.
	ReasonVolumeUnreachable = "VolumeUnreachable"
	// ReasonVolumeAwaited: the Pod waited for a claim's counterpart, and no longer does. To
	// do: nothing.
	ReasonVolumeAwaited = "VolumeAwaited"
	// ReasonPodUnsupported: the Pod sets fields that cannot be pushed, which are named. To
	// do: leave them out (internal/mirror/FIELDS.md has them all).
	ReasonPodUnsupported = "PodUnsupported"
	// ReasonSecretUnsupported: the Pod refers to a Secret that is worth nothing, or too
	// much, in another cluster. To do: use another kind of Secret.
	ReasonSecretUnsupported = "SecretUnsupported"
	// ReasonReferenceMissing: the Pod needs a ConfigMap or Secret that its namespace in the
	// host does not have. To do: create it, or mark the reference as optional.
	ReasonReferenceMissing = "ReferenceMissing"
	// ReasonNamespaceRefused: the member refuses to have the Pod's namespace made. To do:
	// its admin can allow it, or make the namespace and label it as the message says.
	ReasonNamespaceRefused = "NamespaceRefusedByMember"
	// ReasonReferenceForbidden: the manager's account may not get a ConfigMap or Secret that
	// the Pod refers to. To do: list its namespace in the chart's rbac.secretNamespaces.
	ReasonReferenceForbidden = "ReferenceForbidden"
	// ReasonPromiseUnreachable: the Pod of a promise was sent to a node of the host, which
	// no disk reaches. To do: make it again with nodeSelector xylem.io/virtual-node: "true".
	ReasonPromiseUnreachable = "PromiseUnreachable"
	// ReasonEvicted: its member is being deregistered. To do: nothing, its owner makes it
	// again elsewhere.
	ReasonEvicted = "Evicted"
)

// Reasons of Pods that Xylem ended. They are in status.reason and in conditions: a
// kubelet's own where there is one.
const (
	// ReasonLeafVanished: the Pod's counterpart is gone from the member: it is never silently
	// run again. To do: nothing, its owner makes it again.
	ReasonLeafVanished = "LeafPodVanished"
	// ReasonPodIPHidden: the member reports a Pod IP that the host does not show: it is
	// outside the registration's spec.node.podCIDRs, or a special address such as a
	// link-local one. To do: if the address is right, add its range there.
	ReasonPodIPHidden = "PodIPHidden"
	// ReasonLeafEvicted: the member evicted it, in its words. To do: nothing, its owner makes
	// it again.
	ReasonLeafEvicted = "LeafPodEvicted"
	// ReasonTerminated: the Pod was deleted. To do: nothing.
	ReasonTerminated = "Terminated"
	// ReasonVolumeElsewhere: another Pod of the claim had landed in another member first. To
	// do: nothing, its owner makes it again, and the scheduler sends it there.
	ReasonVolumeElsewhere = "VolumeMadeElsewhere"
	// ReasonNodeAffinity: the Pod was bound to the node by hand, and its node selector or
	// affinity does not match. To do: let the scheduler place it.
	ReasonNodeAffinity = "NodeAffinity"
	// ReasonTaintToleration: as NodeAffinity; it does not tolerate a NoExecute taint. To do:
	// let the scheduler place it.
	ReasonTaintToleration = "TaintToleration"
	// ReasonPodOSNotSupported: the Pod is for another operating system. To do: let the
	// scheduler place it.
	ReasonPodOSNotSupported = "PodOSNotSupported"
	// ReasonPodFailed: of the conditions Ready and ContainersReady when Xylem ended the Pod.
	// To do: see its status.reason.
	ReasonPodFailed = "PodFailed"
	// ReasonContainerStatusUnknown: how the container ended was not seen. To do: nothing.
	ReasonContainerStatusUnknown = "ContainerStatusUnknown"
	// ReasonReadinessGates: of the condition Ready; a readiness gate of the host's is not
	// true. To do: see who keeps that gate.
	ReasonReadinessGates = "ReadinessGatesNotReady"
)

// Reasons of events on volumes of the host.
const (
	// ReasonClusterGone: its member was deregistered; the data stay there, out of reach. On
	// its claim too, as the condition xylem.io/Placed. To do: register the same cluster
	// again, under any name, to have it back.
	ReasonClusterGone = "ClusterGone"
	// ReasonAbandoned: an admin let go of the volume in the member; its data stay there. To
	// do: nothing.
	ReasonAbandoned = "Abandoned"
	// ReasonReclaimPolicyUnsupported: the claim of a volume is gone, and the volume has a
	// reclaim policy that Xylem does not support: Recycle. The data are kept. To do: set the
	// policy to Delete or to Retain.
	ReasonReclaimPolicyUnsupported = "ReclaimPolicyUnsupported"
	// ReasonReleaseRefused: no Pod uses a promise that goes with its last Pod, and its disk is
	// kept all the same, since policy Retain holds here or there. To do: run Pods where it is,
	// or set the policy to Delete.
	ReasonReleaseRefused = "ReleaseRefused"
)

// Reasons on virtual nodes. They are those of the condition Ready (beside those of the registration's
// Connected), of the pressures that nobody measures, and of events.
const (
	// ReasonNoReadyNodes: the member is there, but none of its nodes runs Pods. To do: see to
	// its nodes.
	ReasonNoReadyNodes = "NoReadyNodes"
	// ReasonRegistrationGone: the node's registration has vanished while Pods are bound to the
	// node. To do: register the cluster again, or delete the Pods and the node.
	ReasonRegistrationGone = "RegistrationGone"
	// ReasonNotMeasured: the member's own nodes watch over this. To do: nothing.
	ReasonNotMeasured = "NotMeasured"
	// ReasonNetworkOfMember: Pods there have the member's network. To do: nothing.
	ReasonNetworkOfMember = "NetworkOfMember"
)

// Reasons of orphaned volumes. They are in a registration's status.orphans; each is told
// once by an event OrphanedVolume. Nothing destroys them.
const (
	// ReasonOrphanedVolume: of the event on the registration: a volume in the member has no
	// root. To do: make its claim anew with spec.volumeName to use it again, or set its policy
	// to Delete there and delete its claim.
	ReasonOrphanedVolume = "OrphanedVolume"
	// ReasonRootGone: neither the claim that it was made for nor a PersistentVolume of the host
	// stands for it any more. To do: as for OrphanedVolume.
	ReasonRootGone = "RootGone"
	// ReasonRootReplaced: as RootGone, and another claim has the claim's name. To do: as for
	// OrphanedVolume.
	ReasonRootReplaced = "RootReplaced"
	// ReasonWithdrawnLate: a provisioner finished it for a claim that had been withdrawn. It
	// was never used. To do: delete it there.
	ReasonWithdrawnLate = "WithdrawnLate"
)

// Reasons of events on other objects.
const (
	// ReasonForcedDeregistration: on the registration: it was let go of without reaching the
	// member, and what that left behind. To do: see to what is named once the member is back.
	ReasonForcedDeregistration = "ForcedDeregistration"
	// ReasonNotOfXylem: on the CSIDriver csi.xylem.io: it is not as Xylem makes it, and not
	// Xylem's. To do: remove it, so that Xylem can make it.
	ReasonNotOfXylem = "NotOfXylem"
)
