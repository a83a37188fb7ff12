package v1alpha1

// Every reason of an event, of a condition or of a Pod's status that Xylem writes is a constant of
// this package, and internal/REASONS.md is generated from the comments: each describes what the
// reason means and, after "To do:", what the user can do.

// Reasons why a claim is not placed or bound yet, in its conditions xylem.io/Placed and
// xylem.io/Placeable, and in events. Pods that use a promise also report them, after the claim's
// name.
const (
	// ReasonRefusedByMember: the member's API server rejects an object that Xylem pushes, because
	// of a quota, Pod Security or an admission policy. The message quotes it. To do: nothing, if
	// another member is suitable. Xylem tries it after the class's xylem.io/placement-timeout.
	// Otherwise, remove the cause that the message names.
	ReasonRefusedByMember = "RefusedByMember"
	// ReasonNameTaken: the member has an object with that name that Xylem did not create. Xylem
	// does not change it. For ConfigMaps and Secrets, the Pods report it. To do: use another name,
	// or delete that object there.
	ReasonNameTaken = "NameTaken"
	// ReasonClassNotFound: the member has no StorageClass that the claim's class maps to.
	// To do: create the class there, or map one in the registration (spec.storage).
	ReasonClassNotFound = "MemberClassNotFound"
	// ReasonPodRefused: the member's API server rejects the Pod that the claim waits for. To do: as
	// for RefusedByMember.
	ReasonPodRefused = "PodRefusedByMember"
	// ReasonPodUnschedulable: the member's scheduler finds no node for the Pod. The message quotes
	// it. To do: nothing, if another member is suitable. Otherwise, add capacity, or the labels
	// that the Pod requires.
	ReasonPodUnschedulable = "LeafPodUnschedulable"
	// ReasonProvisioningFailed: the member's provisioner reports a failure. The message quotes it.
	// To do: nothing, if another member is suitable. Otherwise, check the driver there.
	ReasonProvisioningFailed = "ProvisioningFailed"
	// ReasonOutOfSpace: the member's driver reports that it is out of space. To do: nothing, if
	// another member is suitable. Otherwise, free or add capacity there.
	ReasonOutOfSpace = "OutOfSpace"
	// ReasonNotScheduled: Xylem reassigned the claim to another member, but the scheduler does not
	// schedule its Pod there. To do: nothing. Xylem tries the next member. The Pod's events show why.
	ReasonNotScheduled = "NotScheduledThere"
	// ReasonNamespaceConflict: the member's namespace with that name does not belong to this host.
	// To do: ask the member's admin to label it xylem.io/host=<host cluster ID>, or use another
	// namespace.
	ReasonNamespaceConflict = "NamespaceConflict"
	// ReasonNamespaceTerminating: the member's namespace with that name is being deleted. To do:
	// nothing. Xylem re-creates it afterwards.
	ReasonNamespaceTerminating = "NamespaceTerminating"
	// ReasonNamespaceNotAdmitted: the member's registration does not admit the namespace, because
	// of its name or labels. Objects of the namespace that are already in the member stay there. To
	// do: use another namespace, or ask an admin to change spec.namespaces of the registration or
	// the namespace's labels.
	ReasonNamespaceNotAdmitted = "NamespaceNotAdmitted"
	// ReasonNamespaceReserved: Xylem pushes nothing from or into the namespaces of
	// Kubernetes (kube-*) and its own. To do: use another namespace.
	ReasonNamespaceReserved = "NamespaceReserved"
	// ReasonMemberAway: the selected member, or the member that has the Pod or its volume, is not
	// connected. It is also the reason of the Ready condition of that member's Pods and Node. To
	// do: follow the message; `kubectl describe clusterregistration` shows the cause.
	ReasonMemberAway = "MemberAway"
	// ReasonPlacedElsewhere: another member has a volume for the claim, or may have one. To
	// do: run the Pod there. If that member is lost permanently, abandon the volume or force
	// the deregistration, as the message describes.
	ReasonPlacedElsewhere = "PlacedElsewhere"
	// ReasonClassKeepsOff: the class's allowedTopologies exclude the member whose node was
	// selected. To do: re-create the Pod on another node, or change the class.
	ReasonClassKeepsOff = "ClassKeepsOff"
	// ReasonClassInvalid: the class has unknown parameters with the prefix xylem.io/, or parameters
	// with invalid values. The class also reports it. To do: delete the class and create a correct
	// one.
	ReasonClassInvalid = "ClassInvalid"
	// ReasonImmediate: the class uses mirror mode but does not wait for a consumer. To do: create
	// it with volumeBindingMode WaitForFirstConsumer, or as a promise class (xylem.io/provisioning:
	// promise).
	ReasonImmediate = "ImmediateUnsupported"
	// ReasonSelectedNode: the node that was selected for the claim is not a virtual node. Xylem
	// removes the selection. To do: find out what binds Pods to that node.
	ReasonSelectedNode = "SelectedNodeNotVirtual"
	// ReasonNoMembers: no cluster is registered. To do: register one.
	ReasonNoMembers = "NoMembers"
	// ReasonNoneConnected: none of the registered clusters is connected. To do: `kubectl
	// get clusterregistrations` shows the causes.
	ReasonNoneConnected = "NoMemberConnected"
	// ReasonNotOffered: a Pod is waiting, and no member has the class. To do: create the class in a
	// member, or map it in its registration (spec.storage). The message shows what each member lacks.
	ReasonNotOffered = "ClassNotOffered"
	// ReasonDataSourceUnsupported: the claim has a data source that Xylem cannot use: one in
	// another namespace, one whose volume is not in a member, or a kind that the
	// registrations do not list. To do: use another source, have an admin list the kind
	// (spec.storage.dataSources), or remove it and copy the data in a Pod.
	ReasonDataSourceUnsupported = "DataSourceUnsupported"
	// ReasonSourceNotReady: the source claim or snapshot does not exist, has no volume yet, or is
	// not ready. To do: create it or, if it is a claim, create a Pod that uses it, so that its volume
	// is provisioned. Xylem then creates the new claim in the member. `kubectl describe
	// volumesnapshot` shows why a snapshot is not ready.
	ReasonSourceNotReady = "SourceNotReady"
	// ReasonSourceElsewhere: Xylem can create the claim only in the member that has its source, but
	// the Pod, the class or another claim of the Pod excludes that member. To do: change the Pod,
	// or use a source in another member.
	ReasonSourceElsewhere = "SourceElsewhere"
	// ReasonSourceGone: the source claim or snapshot was deleted, is being deleted, or was replaced
	// by another one of the same name, which Xylem does not copy. To do: delete the claim and
	// create it again from a source that exists.
	ReasonSourceGone = "SourceGone"
	// ReasonSourceMismatch: the claim requests less capacity than its source has, another
	// volumeMode, or a class of another driver; or the volume in the member was not created from
	// the source. To do: delete the claim and create it again with the size, volumeMode and class
	// of its source.
	ReasonSourceMismatch = "SourceMismatch"
	// ReasonAttributesClassNotFound: the member does not have the VolumeAttributesClass that the
	// claim's class maps to, or does not let Xylem read it. If the claim has no volume yet, Xylem
	// tries another suitable member. To do: create the class there, or map one in the registration
	// (spec.storage.attributesClasses).
	ReasonAttributesClassNotFound = "AttributesClassNotFound"
	// ReasonAttributesClassMismatch: the claim's VolumeAttributesClass belongs to another driver
	// than csi.xylem.io in the host, or than the volume's driver in the member. To do: use another
	// class, or map another one in the registration.
	ReasonAttributesClassMismatch = "AttributesClassMismatch"
	// ReasonModifyUnsupported: the claim has no VolumeAttributesClass, but its volume in the member
	// has one. Kubernetes does not allow its removal. To do: set the class that the volume should
	// have.
	ReasonModifyUnsupported = "ModifyVolumeUnsupported"
	// ReasonAdoptionRefused: a PersistentVolume that an admin created requests a member's volume that
	// it cannot represent: the volume does not exist, is in use, or does not match. Reported on the
	// PersistentVolume and on the claim that is bound to it. To do: follow the message.
	ReasonAdoptionRefused = "AdoptionRefused"
	// ReasonConsentMissing: a PersistentVolume that an admin created requests a volume of a member
	// whose admin has not consented. Reported on the PersistentVolume and on the claim that is
	// bound to it. To do: ask the member's admin to label the volume there xylem.io/host=<host
	// cluster ID>. The message shows the command.
	ReasonConsentMissing = "ConsentMissing"
	// ReasonSelectorUnsupported: a claim of a promise class has a selector, which can only select
	// existing volumes. To do: remove spec.selector.
	ReasonSelectorUnsupported = "SelectorUnsupported"
	// ReasonVolumeNameUnsupported: a claim of a promise class requests a volume by name. To do:
	// remove spec.volumeName.
	ReasonVolumeNameUnsupported = "VolumeNameUnsupported"
	// ReasonVolumeLost: the claim is bound to a volume that the member no longer has. Xylem
	// creates nothing in its place. To do: restore the volume there, or delete the claim.
	ReasonVolumeLost = "VolumeLost"
	// ReasonVolumeTerminating: somebody deleted the claim's volume in the member or, before the
	// claim was bound to it, its PersistentVolume in the host. Kubernetes keeps the volume while a
	// bound claim uses it, and Xylem keeps its disk. To do: copy the data that you need, then
	// delete the claim.
	ReasonVolumeTerminating = "VolumeTerminating"
	// ReasonVolumeReplaced: the volume in the member has the name of the claim's volume but another
	// UID. Xylem does not use it, and keeps the data of both. To do: rescue the data that you need
	// in the member, then delete the claim.
	ReasonVolumeReplaced = "VolumeReplaced"
	// ReasonVolumeKept: Xylem does not delete a claim in the member, because a PersistentVolume in
	// the host represents, or may represent, its volume. Reported on that PersistentVolume if the
	// claim no longer exists. To do: follow the message.
	ReasonVolumeKept = "VolumeKept"
	// ReasonVolumeMismatch: the claim and its counterpart are bound to different volumes, another
	// claim in the member uses the volume, somebody removed Xylem's stamp from it, two
	// PersistentVolumes in the host represent it (reported on one of them if the claim no longer
	// exists), or the requested volume does not match the claim. To do: follow the message. Find
	// out which volume has the data before you delete either, or change the claim so that it
	// matches.
	ReasonVolumeMismatch = "VolumeMismatch"
	// ReasonSurplusVolume: the member has a second volume for the claim. Xylem does not use
	// it, and keeps its data. To do: if nobody needs the data, delete the claim that the
	// message names in that member.
	ReasonSurplusVolume = "SurplusVolume"
	// ReasonAmbiguousVolume: several members have a volume with the name that the claim requests. To
	// do: delete all of these volumes except the right one.
	ReasonAmbiguousVolume = "AmbiguousVolume"
	// ReasonAdoptionUnconfirmed: the volume that the claim requests was abandoned, or its namespace
	// was re-created; or a member has a volume for the claim, although Xylem never placed the claim
	// there. To do: an admin can allow its use with the annotation xylem.io/adopt on the
	// registration. After a restore of the host, confirm the restore first.
	ReasonAdoptionUnconfirmed = "AdoptionUnconfirmed"
	// ReasonPlacementUnconfirmed: the claim is older than the last restore of the host, so it may
	// already have been placed in another member. That member has a counterpart of the claim, or
	// Xylem cannot check it. To do: follow the message: confirm the restore, make the member
	// reachable, or deregister it. A claim without data can be re-created instead.
	ReasonPlacementUnconfirmed = "PlacementUnconfirmed"
	// ReasonSuspended: Xylem must delete an object in the member first, but has suspended deletions
	// because one of the two clusters was restored from an older state. To do: confirm the restore
	// as the registration's Connected condition describes.
	ReasonSuspended = "DestructionSuspended"
)

// Reasons of the claim condition xylem.io/Promise.
const (
	// ReasonPromised: the disk does not exist yet. When the first Pod is scheduled to a member, that
	// member provisions the disk. To do: nothing.
	ReasonPromised = "Promised"
	// ReasonFulfilled: the disk exists; the message shows where. To do: nothing.
	ReasonFulfilled = "Fulfilled"
	// ReasonBroken: a Pod is waiting for the disk, but the member does not provision it or has lost
	// it. The message quotes the member. To do: as for the reason at the beginning of the message.
	ReasonBroken = "Broken"
)

// Reasons of the claim condition xylem.io/Attached. While the member is away, the reason is
// MemberAway. After the member's deregistration, it is ClusterGone.
const (
	// ReasonAttached: the volume is attached to the node of the member that the message
	// names. To do: nothing.
	ReasonAttached = "Attached"
	// ReasonDetached: the volume is not attached to any node of the member, because no Pod there
	// needs it. To do: nothing.
	ReasonDetached = "Detached"
	// ReasonAttaching: the member has been attaching the volume to a node for some time, and
	// the driver reports no error. To do: wait, or ask the member's admin to check the driver.
	ReasonAttaching = "Attaching"
	// ReasonDetaching: the member has been detaching the volume from a node for some time,
	// and the driver reports no error. To do: wait, or ask the member's admin to check the
	// driver.
	ReasonDetaching = "Detaching"
	// ReasonAttachFailed: the driver cannot attach the volume to the node that the member selected
	// for the Pod. The message quotes the driver and names the nodes that have the volume.
	// Kubernetes retries. To do: ask the member's admin to check the driver and the node.
	ReasonAttachFailed = "AttachFailed"
	// ReasonDetachFailed: the driver cannot detach the volume from a node that no longer needs it.
	// The message quotes the driver. A Pod on another node may have to wait for that. Kubernetes
	// retries. To do: ask the member's admin to check the driver and the node.
	ReasonDetachFailed = "DetachFailed"
	// ReasonAttachmentsUnreadable: the member does not let Xylem read its VolumeAttachments.
	// To do: upgrade the chart xylem-member, or apply config/member, there.
	ReasonAttachmentsUnreadable = "AttachmentsUnreadable"
)

// Reasons of events about a claim.
const (
	// ReasonVolumeMirrored: the member has provisioned the volume. To do: nothing.
	ReasonVolumeMirrored = "VolumeMirrored"
	// ReasonVolumeRecreated: the host's PersistentVolume was deleted. Xylem created it again
	// for the member's volume, with policy Retain. To do: set policy Delete if the data
	// should be deleted with the claim.
	ReasonVolumeRecreated = "VolumeRecreated"
	// ReasonVolumeAdopted: the claim uses the volume of an earlier claim of the same name. On a
	// PersistentVolume that an admin created: it now represents the member's volume that its handle
	// names. To do: nothing.
	ReasonVolumeAdopted = "VolumeAdopted"
	// ReasonExpansionPushed: Xylem requested the expansion of the volume in the member. To
	// do: nothing.
	ReasonExpansionPushed = "ExpansionPushed"
	// ReasonModificationPushed: Xylem asked the member to change the volume's attributes, or to
	// cancel such a change. To do: nothing; the claim's status shows the progress.
	ReasonModificationPushed = "ModificationPushed"
	// ReasonHeldBack: the host's PV controller has many volumes to bind, and Xylem places claims
	// only as fast as the controller binds them. To do: nothing. If this persists, check
	// kube-controller-manager.
	ReasonHeldBack = "HeldBack"
	// ReasonPlacementWithdrawn: Xylem withdrew the claim from a member before a volume was
	// bound there. To do: nothing.
	ReasonPlacementWithdrawn = "PlacementWithdrawn"
	// ReasonPlacementMoved: the member could not satisfy the claim, and Xylem tries another one.
	// The message quotes the member. The claim's Pods also report it. To do: nothing, or fix that
	// member.
	ReasonPlacementMoved = "PlacementMoved"
	// ReasonPlacementFailed: no member could satisfy the Pod's claims, or no other member can take
	// them. The message quotes each member. If the Pod uses a promise, Xylem sets the Pod's phase to
	// Failed, so that its owner re-creates it. Reported on Pods. To do: fix one of the members.
	ReasonPlacementFailed = "PlacementFailed"
	// ReasonPromiseFulfilled: the member has provisioned the disk of a promise. The Pods also
	// report it. To do: nothing.
	ReasonPromiseFulfilled = "PromiseFulfilled"
	// ReasonPromiseBroken: the claim is Bound to a promise, but the member does not provision the disk
	// or has lost it. The message quotes the member. To do: as for the reason at the beginning of the
	// message.
	ReasonPromiseBroken = "PromiseBroken"
	// ReasonVolumeReleased: the promise is no longer used by any Pod, and Xylem destroys its disk, as
	// the class requests (xylem.io/release: WhenUnused). To do: nothing.
	ReasonVolumeReleased = "VolumeReleased"
)

// Reasons on Pods, in the condition xylem.io/Pushed and in events. A Pod also reports the reasons
// of its claims and its namespace, above.
const (
	// ReasonPushed: the Pod runs in the member, or is about to start there. The message has the UID
	// of its leaf Pod. To do: nothing.
	ReasonPushed = "Pushed"
	// ReasonWithdrawn: Xylem withdrew the Pod from the member. The message shows why. To do:
	// nothing.
	ReasonWithdrawn = "Withdrawn"
	// ReasonDaemonSet: Xylem does not push Pods of DaemonSets. To do: run the DaemonSet in
	// the member, or exclude nodes with the label xylem.io/virtual-node=true.
	ReasonDaemonSet = "DaemonSetNotPushed"
	// ReasonClaimNotBound: somebody bound the Pod to the node manually, but one of its claims is
	// not bound. To do: let the scheduler place the Pod.
	ReasonClaimNotBound = "ClaimNotBound"
	// ReasonClaimForeign: the claim for the Pod's ephemeral volume already exists and does not
	// belong to the Pod. To do: delete that claim, or rename the Pod.
	ReasonClaimForeign = "ClaimNotOfPod"
	// ReasonVolumeUnreachable: the Pod is on a node of another member, or of the host itself, which
	// cannot reach the Pod's volumes. To do: let the scheduler place the Pod. If it uses a promise
	// that any member may fulfill, in a host before Kubernetes 1.37, set nodeSelector
	// xylem.io/virtual-node: "true".
	ReasonVolumeUnreachable = "VolumeUnreachable"
	// ReasonVolumeAwaited: an earlier problem of the Pod is solved, and the Pod now waits for a
	// claim's volume in the member. To do: nothing.
	ReasonVolumeAwaited = "VolumeAwaited"
	// ReasonPodUnsupported: the Pod sets fields that Xylem cannot push. The message names them. To
	// do: remove them (internal/mirror/FIELDS.md lists every field).
	ReasonPodUnsupported = "PodUnsupported"
	// ReasonSecretUnsupported: the Pod refers to a Secret of a type that is useless or too powerful
	// in another cluster. To do: use another type of Secret.
	ReasonSecretUnsupported = "SecretUnsupported"
	// ReasonReferenceMissing: the Pod needs a ConfigMap or Secret that its namespace in the
	// host does not have. To do: create it, or mark the reference as optional.
	ReasonReferenceMissing = "ReferenceMissing"
	// ReasonNamespaceRefused: the member rejects the creation of the Pod's namespace. To
	// do: its admin can allow it, or create the namespace and label it as the message describes.
	ReasonNamespaceRefused = "NamespaceRefusedByMember"
	// ReasonReferenceForbidden: the manager's account is not allowed to get a ConfigMap or Secret
	// that the Pod refers to. To do: add the namespace to the chart's rbac.secretNamespaces.
	ReasonReferenceForbidden = "ReferenceForbidden"
	// ReasonTolerationMissing: the Pod uses a claim of one of Xylem's classes, but does not
	// tolerate the taint of any virtual node. To do: add the toleration that the message shows.
	ReasonTolerationMissing = "TolerationMissing"
	// ReasonNoCapacity: a claim of the Pod requests more capacity than any suitable member has. The
	// message shows how much each member has. To do: request less, or add capacity.
	ReasonNoCapacity = "NoCapacity"
	// ReasonNodeSelectorMismatch: the Pod's nodeSelector or node affinity excludes every
	// member. To do: change it.
	ReasonNodeSelectorMismatch = "NodeSelectorMismatch"
	// ReasonCordoned: all virtual nodes that are suitable for the Pod are cordoned. To do: uncordon
	// one.
	ReasonCordoned = "MemberCordoned"
	// ReasonVolumesApart: no member can reach all volumes of the Pod. To do: use claims whose volumes
	// are in the same member.
	ReasonVolumesApart = "VolumesApart"
	// ReasonNoMemberFits: every member lacks something that the Pod needs. The message shows the cause
	// for each member. To do: remove the cause for one of the members.
	ReasonNoMemberFits = "NoMemberFits"
	// ReasonFieldsLeftOut: the Pod runs in the member without the fields that the message names. To
	// do: nothing, if it does not need them. internal/mirror/FIELDS.md explains why.
	ReasonFieldsLeftOut = "FieldsLeftOut"
	// ReasonEphemeralContainersNotRun: somebody added ephemeral containers to a Pod that runs
	// in a member, as `kubectl debug` does, and Xylem could not add them there. To do: follow
	// the message, for example ask the member's admin to grant the right.
	ReasonEphemeralContainersNotRun = "EphemeralContainersNotRun"
	// ReasonEvicted: Xylem evicted the Pod, because its member is being deregistered. To do:
	// nothing. Its owner creates another one.
	ReasonEvicted = "Evicted"
)

// Reasons of Pods that Xylem ended. They are in status.reason and in conditions. If the kubelet has
// a reason for the same case, Xylem uses that reason.
const (
	// ReasonLeafVanished: the Pod's leaf was deleted in the member. Xylem never silently runs it
	// again. To do: nothing. Its owner creates another one.
	ReasonLeafVanished = "LeafPodVanished"
	// ReasonPodIPHidden: the member reports a Pod IP that the host does not show, because it is
	// outside the registration's spec.node.podCIDRs or is a special address, such as a link-local
	// address. To do: if the address is correct, add its range there.
	ReasonPodIPHidden = "PodIPHidden"
	// ReasonLeafEvicted: the member evicted the Pod. The message quotes the member. To do: nothing.
	// Its owner creates another one.
	ReasonLeafEvicted = "LeafPodEvicted"
	// ReasonTerminated: the Pod was deleted. To do: nothing.
	ReasonTerminated = "Terminated"
	// ReasonVolumeElsewhere: another Pod that uses the claim was scheduled to another member first.
	// To do: nothing. Its owner creates another Pod, and the scheduler places it in that member.
	ReasonVolumeElsewhere = "VolumeMadeElsewhere"
	// ReasonNodeAffinity: somebody bound the Pod to the node manually, but its node selector or
	// affinity does not match. To do: let the scheduler place the Pod.
	ReasonNodeAffinity = "NodeAffinity"
	// ReasonTaintToleration: somebody bound the Pod to the node manually, but it does not tolerate
	// a NoExecute taint. To do: let the scheduler place the Pod.
	ReasonTaintToleration = "TaintToleration"
	// ReasonPodOSNotSupported: the Pod requires another operating system. To do: let the
	// scheduler place the Pod.
	ReasonPodOSNotSupported = "PodOSNotSupported"
	// ReasonPodFailed: Xylem ended the Pod. Reported in the conditions Ready and ContainersReady. To
	// do: see the Pod's status.reason.
	ReasonPodFailed = "PodFailed"
	// ReasonContainerStatusUnknown: Xylem did not observe how the container ended. To do:
	// nothing.
	ReasonContainerStatusUnknown = "ContainerStatusUnknown"
	// ReasonReadinessGates: a readiness gate is not True on the Pod in the host. Reported in the
	// condition Ready. To do: check the controller that sets the gate.
	ReasonReadinessGates = "ReadinessGatesNotReady"
)

// Reasons of events on volumes in the host.
const (
	// ReasonClusterGone: the volume's member was deregistered. The data is still there, but Xylem
	// cannot reach it. The claim's condition xylem.io/Placed also reports it. To do: register the
	// same cluster again, under any name, to use the volume again.
	ReasonClusterGone = "ClusterGone"
	// ReasonAbandoned: an admin abandoned the volume. Its data is still in the member. To do:
	// nothing.
	ReasonAbandoned = "Abandoned"
	// ReasonReclaimPolicyUnsupported: the volume's claim was deleted, but Xylem does not support
	// the volume's reclaim policy, Recycle. Xylem keeps the data. To do: set the policy to Delete
	// or Retain.
	ReasonReclaimPolicyUnsupported = "ReclaimPolicyUnsupported"
	// ReasonReleaseRefused: no Pod uses a promise that is released with its last Pod, but Xylem
	// keeps its disk, because the policy in the host or in the member is Retain. Or the claim of an
	// adopted volume was deleted before any Pod used it. To do: follow the message. Run Pods in
	// that member, set the policy to Delete, or use the volume again.
	ReasonReleaseRefused = "ReleaseRefused"
)

// Reasons on virtual nodes. They are in the condition Ready (along with the reasons of the
// registration's Connected condition), in the pressure conditions that only the member's nodes
// measure, and in events.
const (
	// ReasonNoReadyNodes: the member responds, but none of its nodes is Ready. To do: check
	// its nodes.
	ReasonNoReadyNodes = "NoReadyNodes"
	// ReasonPodsKept: the member is away, but the node stays Ready, so that the host does not evict
	// its Pods (spec.node.whenAway: Keep). The taint xylem.io/member-away keeps new Pods off the
	// node. The condition xylem.io/MemberAway shows the cause. To do: remove the cause.
	ReasonPodsKept = "PodsKept"
	// ReasonRegistrationGone: the node's registration was deleted while Pods were bound to the
	// node. To do: register the cluster again, or delete the Pods and the node.
	ReasonRegistrationGone = "RegistrationGone"
	// ReasonNotMeasured: only the member's nodes measure this pressure. To do: nothing.
	ReasonNotMeasured = "NotMeasured"
	// ReasonNetworkOfMember: Pods on this node use the member's network. To do: nothing.
	ReasonNetworkOfMember = "NetworkOfMember"
)

// Reasons of orphaned volumes. They are in a registration's status.orphans, and in one
// OrphanedVolume event for each volume. Xylem does not destroy these volumes.
const (
	// ReasonOrphanedVolume: a volume in the member has no root. Reported in an event on the
	// registration. To do: re-create its claim with spec.volumeName to use it again, or set its policy
	// to Delete there and delete its leaf claim.
	ReasonOrphanedVolume = "OrphanedVolume"
	// ReasonRootGone: the volume's claim and its PersistentVolume in the host no longer exist. To do:
	// as for OrphanedVolume.
	ReasonRootGone = "RootGone"
	// ReasonRootReplaced: the volume's claim and its PersistentVolume in the host no longer exist, and
	// another claim now has the claim's name. To do: as for OrphanedVolume.
	ReasonRootReplaced = "RootReplaced"
	// ReasonWithdrawnLate: a provisioner created the volume after Xylem had withdrawn its claim. No
	// Pod ever used it. To do: delete the volume in the member.
	ReasonWithdrawnLate = "WithdrawnLate"
)

// Reasons of events on VolumeSnapshots. The message is also in status.error of the snapshot and of
// its content. Xylem does not destroy these snapshots.
const (
	// ReasonSnapshotClassNotFound: the member has no VolumeSnapshotClass that the snapshot's
	// class maps to. To do: create the class there, or map one in the registration
	// (spec.storage.snapshotClasses).
	ReasonSnapshotClassNotFound = "SnapshotClassNotFound"
	// ReasonSnapshotClassMismatch: the member's class belongs to another driver than the claim's
	// volume. To do: map a class of that driver.
	ReasonSnapshotClassMismatch = "SnapshotClassMismatch"
	// ReasonSnapshotsUnsupported: the member does not serve snapshots, or does not let Xylem read
	// them. To do: install the VolumeSnapshot CustomResourceDefinitions and the snapshot-controller
	// there, and grant the permissions in config/member. Xylem then detects it.
	ReasonSnapshotsUnsupported = "SnapshotsUnsupported"
	// ReasonSnapshotSourceInvalid: the content's source is not the volume of the snapshot's claim,
	// or is not a volume of Xylem; or the content was created for a snapshot that already exists.
	// To do: use a snapshot class for the driver of the claim's volume.
	ReasonSnapshotSourceInvalid = "SnapshotSourceInvalid"
	// ReasonSnapshotSourceNotReady: the claim has no disk in a member yet. To do: follow
	// the message. Xylem takes the snapshot as soon as the disk exists.
	ReasonSnapshotSourceNotReady = "SnapshotSourceNotReady"
	// ReasonSnapshotLost: the member no longer has the snapshot, or the object from which it can be
	// restored. Xylem does not take another snapshot instead. To do: follow the message.
	ReasonSnapshotLost = "SnapshotLost"
	// ReasonSnapshotReplaced: the member has another snapshot with the same name. Xylem does not
	// use it, and keeps the data of both. To do: rescue the data that you need in the member, then
	// delete the snapshot.
	ReasonSnapshotReplaced = "SnapshotReplaced"
	// ReasonSnapshotTerminating: somebody deleted the snapshot in the member, or the
	// VolumeSnapshotContent before it was ready. Xylem keeps the data in the member. To do: restore
	// what you need, then delete the snapshot.
	ReasonSnapshotTerminating = "SnapshotTerminating"
	// ReasonSnapshotAbandoned: the snapshot's member was deregistered, or an admin abandoned
	// the snapshot. Its data is still in the member. To do: register the cluster again, or
	// delete the snapshot.
	ReasonSnapshotAbandoned = "SnapshotAbandoned"
	// ReasonOrphanedSnapshot: a snapshot in the member has no VolumeSnapshotContent in the host.
	// Reported in an event on the registration. To do: as for OrphanedSnapshots.
	ReasonOrphanedSnapshot = "OrphanedSnapshot"
)

// Reasons of events on other objects.
const (
	// ReasonForcedDeregistration: Xylem abandoned the member without contacting it. The message lists
	// the objects that are left there. Reported on the registration. To do: delete them if the member
	// becomes reachable again.
	ReasonForcedDeregistration = "ForcedDeregistration"
	// ReasonEndpointsInMember: a Service in the host selects Pods that run in a member. Xylem does not
	// connect networks. Reported once on the Service. To do: set spec.node.podCIDRs of the
	// registration if the networks are connected, and check the route.
	ReasonEndpointsInMember = "EndpointsInMember"
	// ReasonNotOfXylem: Xylem did not create the CSIDriver csi.xylem.io or
	// mock.csi.virtual-kubelet.io, and its settings differ from what Xylem needs. To do: delete it, so
	// that Xylem creates it again.
	ReasonNotOfXylem = "NotOfXylem"
)
