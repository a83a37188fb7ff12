package v1alpha1

// Every reason of an event, of a condition or of a Pod's status that Xylem writes is
// a constant of this package, and internal/REASONS.md is generated from their comments: what
// the reason means, and after "To do:" what the user can do.

// Reasons why a claim is not placed or bound yet, in its conditions xylem.io/Placed and
// xylem.io/Placeable, and in events. The Pods of a promise report them too, after the
// claim's name.
const (
	// ReasonRefusedByMember: the member's API server rejects what Xylem pushes: a quota,
	// Pod Security, an admission policy. The message quotes it. To do: nothing, if another
	// member suits: Xylem tries it after the class's xylem.io/placement-timeout. Otherwise
	// change what the message names.
	ReasonRefusedByMember = "RefusedByMember"
	// ReasonNameTaken: the member has an object of that name that Xylem did not create, and
	// does not touch. For ConfigMaps and Secrets, the Pods report it. To do: use another
	// name, or delete that object there.
	ReasonNameTaken = "NameTaken"
	// ReasonClassNotFound: the member has no StorageClass that the claim's class maps to.
	// To do: create the class there, or map one in the registration (spec.storage).
	ReasonClassNotFound = "MemberClassNotFound"
	// ReasonPodRefused: the member's API server rejects the Pod that the claim waits for.
	// To do: as for RefusedByMember.
	ReasonPodRefused = "PodRefusedByMember"
	// ReasonPodUnschedulable: the member's scheduler finds no node for the Pod. The message
	// quotes it. To do: nothing, if another member suits. Otherwise add capacity, or the
	// labels that the Pod requires.
	ReasonPodUnschedulable = "LeafPodUnschedulable"
	// ReasonProvisioningFailed: the member's provisioner reports a failure. The message
	// quotes it. To do: nothing, if another member suits. Otherwise check the driver there.
	ReasonProvisioningFailed = "ProvisioningFailed"
	// ReasonOutOfSpace: the member's driver reports that it is out of space. To do:
	// nothing, if another member suits. Otherwise free or add capacity there.
	ReasonOutOfSpace = "OutOfSpace"
	// ReasonNotScheduled: Xylem reassigned the claim to another member, and the scheduler
	// does not place its Pod there. To do: nothing, Xylem tries the next member; the Pod's
	// events say why.
	ReasonNotScheduled = "NotScheduledThere"
	// ReasonNamespaceConflict: the member's namespace of that name does not belong to this
	// host. To do: ask the member's admin to label it xylem.io/host=<host cluster ID>, or
	// use another namespace.
	ReasonNamespaceConflict = "NamespaceConflict"
	// ReasonNamespaceTerminating: the member's namespace of that name is being deleted. To
	// do: nothing, Xylem creates it again afterwards.
	ReasonNamespaceTerminating = "NamespaceTerminating"
	// ReasonNamespaceNotAdmitted: the registration of the member does not admit the
	// namespace, by its name or its labels. What the member has of it already stays there. To
	// do: use another namespace, or ask an admin to change spec.namespaces of the registration
	// or the namespace's labels.
	ReasonNamespaceNotAdmitted = "NamespaceNotAdmitted"
	// ReasonNamespaceReserved: Xylem pushes nothing from or into the namespaces of
	// Kubernetes (kube-*) and its own. To do: use another namespace.
	ReasonNamespaceReserved = "NamespaceReserved"
	// ReasonMemberAway: the member that was chosen, or that has the Pod or its volume, is not
	// connected. It is also the reason of the condition Ready of that member's Pods, and of its
	// Node. To do: follow the message; `kubectl describe clusterregistration` has the cause.
	ReasonMemberAway = "MemberAway"
	// ReasonPlacedElsewhere: another member has a volume for the claim, or may have one. To
	// do: run the Pod there. If that member is lost permanently, abandon the volume or force
	// the deregistration, as the message describes.
	ReasonPlacedElsewhere = "PlacedElsewhere"
	// ReasonClassKeepsOff: the class's allowedTopologies exclude the member whose node was
	// chosen. To do: re-create the Pod on another node, or change the class.
	ReasonClassKeepsOff = "ClassKeepsOff"
	// ReasonClassInvalid: the class has parameters with the prefix xylem.io/ that Xylem
	// does not know, or invalid values. The class reports it too. To do: delete the class
	// and create a correct one.
	ReasonClassInvalid = "ClassInvalid"
	// ReasonImmediate: a class of Xylem's in mirror mode does not wait for a consumer. To
	// do: create it with volumeBindingMode WaitForFirstConsumer, or as a promise
	// (xylem.io/provisioning: promise).
	ReasonImmediate = "ImmediateUnsupported"
	// ReasonSelectedNode: the node that was selected for the claim represents no member. To
	// do: nothing, Xylem removes the selection. Find out what binds Pods to that node.
	ReasonSelectedNode = "SelectedNodeNotVirtual"
	// ReasonNoMembers: no cluster is registered. To do: register one.
	ReasonNoMembers = "NoMembers"
	// ReasonNoneConnected: none of the registered clusters is connected. To do: `kubectl
	// get clusterregistrations` shows the causes.
	ReasonNoneConnected = "NoMemberConnected"
	// ReasonNotOffered: a Pod waits, and no member has the class. To do: see the message for
	// what each member lacks.
	ReasonNotOffered = "ClassNotOffered"
	// ReasonDataSourceUnsupported: the claim has a data source that Xylem cannot use: one in
	// another namespace, one whose volume is not in a member, or a kind that the
	// registrations do not list. To do: use another source, have an admin list the kind
	// (spec.storage.dataSources), or remove it and copy the data in a Pod.
	ReasonDataSourceUnsupported = "DataSourceUnsupported"
	// ReasonSourceNotReady: the claim or snapshot that the claim is to be created from does
	// not exist, has no volume yet, or is not ready. To do: create it, or create a Pod that
	// uses it, so that it gets its volume; kubectl describe volumesnapshot shows why a
	// snapshot is not ready. Xylem then creates the claim.
	ReasonSourceNotReady = "SourceNotReady"
	// ReasonSourceElsewhere: the claim can only be created in the member that has its source,
	// and its Pod, its class or another claim of the Pod excludes that member. To do: change
	// the Pod, or use a source in another member.
	ReasonSourceElsewhere = "SourceElsewhere"
	// ReasonSourceGone: the claim or snapshot that the claim was to be created from was
	// deleted, or is being deleted, or another one has its name now. Xylem does not copy that
	// one by mistake. To do: delete the claim and create it again, from a source that exists.
	ReasonSourceGone = "SourceGone"
	// ReasonSourceMismatch: the claim requests less than its source has, another volumeMode,
	// or a class of another driver; or the volume in the member was not created from the
	// source. To do: delete the claim and create it again, with the size, volumeMode and class
	// of its source.
	ReasonSourceMismatch = "SourceMismatch"
	// ReasonAttributesClassNotFound: the member has no VolumeAttributesClass that the
	// claim's maps to, or does not let Xylem read it. To do: create the class there, or map
	// one in the registration (spec.storage.attributesClasses). A claim that waits for its
	// volume goes to another member that suits.
	ReasonAttributesClassNotFound = "AttributesClassNotFound"
	// ReasonAttributesClassMismatch: the claim's VolumeAttributesClass is of another driver:
	// in the host, not of csi.xylem.io; in the member, not of the volume's driver. To do:
	// name another class, or map another one in the registration.
	ReasonAttributesClassMismatch = "AttributesClassMismatch"
	// ReasonModifyUnsupported: the claim names no VolumeAttributesClass, and its volume in
	// the member has one, which Kubernetes does not let anybody take off. To do: name the
	// class that the volume is to have.
	ReasonModifyUnsupported = "ModifyVolumeUnsupported"
	// ReasonAdoptionRefused: a PersistentVolume that an admin created asks for a volume of a
	// member, and may not have it: the volume is not there, somebody uses it, or the two do
	// not agree. On the PersistentVolume, and on the claim that is bound to it. To do: follow
	// the message.
	ReasonAdoptionRefused = "AdoptionRefused"
	// ReasonConsentMissing: a PersistentVolume that an admin created asks for a volume of a
	// member, whose admin has not consented. On the PersistentVolume, and on the claim that
	// is bound to it. To do: ask the member's admin to label the volume there
	// xylem.io/host=<host cluster ID>. The message has the command.
	ReasonConsentMissing = "ConsentMissing"
	// ReasonSelectorUnsupported: the claim of a promise has a selector, but promises have
	// no labels to select. To do: remove spec.selector.
	ReasonSelectorUnsupported = "SelectorUnsupported"
	// ReasonVolumeNameUnsupported: the claim of a promise names a volume. To do: remove
	// spec.volumeName.
	ReasonVolumeNameUnsupported = "VolumeNameUnsupported"
	// ReasonVolumeLost: the claim is bound to a volume that the member no longer has. Xylem
	// creates nothing in its place. To do: restore the volume there, or delete the claim.
	ReasonVolumeLost = "VolumeLost"
	// ReasonVolumeTerminating: somebody deleted the claim's volume in the member or, before
	// the claim was bound to it, its PersistentVolume in the host. While a bound claim uses
	// it, Kubernetes keeps the volume, and Xylem keeps its disk. To do: copy the data that
	// you need, then delete the claim.
	ReasonVolumeTerminating = "VolumeTerminating"
	// ReasonVolumeReplaced: the volume in the member has the name of the claim's volume,
	// but another UID. Xylem does not use it, and keeps the data of both. To do: rescue the
	// data that you need in the member, then delete the claim.
	ReasonVolumeReplaced = "VolumeReplaced"
	// ReasonVolumeKept: Xylem does not delete a claim in the member, because a
	// PersistentVolume of the host represents its volume, or may do so; on that
	// PersistentVolume if the claim is gone. To do: follow the message.
	ReasonVolumeKept = "VolumeKept"
	// ReasonVolumeMismatch: the claim and its counterpart are bound to different volumes,
	// another claim in the member uses the volume, somebody removed Xylem's stamp from it,
	// two PersistentVolumes of the host represent it (on one of these if its claim is gone),
	// or the volume that the claim asks for does not suit it. To do: follow the message:
	// find out which one holds the data before you delete either, or ask for what the
	// volume has.
	ReasonVolumeMismatch = "VolumeMismatch"
	// ReasonSurplusVolume: the member has a second volume for the claim. Xylem does not use
	// it, and keeps its data. To do: if nobody needs the data, delete the claim that the
	// message names in that member.
	ReasonSurplusVolume = "SurplusVolume"
	// ReasonAmbiguousVolume: several members have a volume of the name that the claim
	// requests. To do: delete all but the right one there.
	ReasonAmbiguousVolume = "AmbiguousVolume"
	// ReasonAdoptionUnconfirmed: the volume that the claim names was abandoned, or its
	// namespace was re-created; or a member has a volume for the claim where Xylem never
	// placed it. To do: an admin can allow it with the annotation xylem.io/adopt on the
	// registration. After a restore of the host, confirm the restore first.
	ReasonAdoptionUnconfirmed = "AdoptionUnconfirmed"
	// ReasonPlacementUnconfirmed: the claim is older than the last restore of the host, so
	// that it may have been placed in another member before. That member has a counterpart of
	// the claim, or Xylem can't ask it. To do: follow the message: confirm the restore, make
	// the member reachable, or deregister it. A claim without data can be re-created instead.
	ReasonPlacementUnconfirmed = "PlacementUnconfirmed"
	// ReasonSuspended: Xylem has to delete something in the member first, and deletes
	// nothing since one of the two clusters was restored from an older state. To do:
	// confirm the restore as the registration's Connected condition describes.
	ReasonSuspended = "DestructionSuspended"
)

// Reasons of the condition xylem.io/Promise of claims.
const (
	// ReasonPromised: there is no disk yet. The member that the first Pod is scheduled to
	// provisions one. To do: nothing.
	ReasonPromised = "Promised"
	// ReasonFulfilled: the disk exists; the message shows where. To do: nothing.
	ReasonFulfilled = "Fulfilled"
	// ReasonBroken: a Pod waits for the disk, and the member does not provision it, or has
	// lost it. The message quotes the member. To do: as for the reason that the message
	// begins with.
	ReasonBroken = "Broken"
)

// Reasons of the condition xylem.io/Attached of claims. While the member is away, it is
// MemberAway, and after its deregistration ClusterGone.
const (
	// ReasonAttached: the volume is attached to the node of the member that the message
	// names. To do: nothing.
	ReasonAttached = "Attached"
	// ReasonDetached: the volume is attached to no node of the member, since no Pod there
	// needs it. To do: nothing.
	ReasonDetached = "Detached"
	// ReasonAttaching: the member has been attaching the volume to a node for some time, and
	// the driver reports no error. To do: wait, or ask the member's admin to check the driver.
	ReasonAttaching = "Attaching"
	// ReasonDetaching: the member has been detaching the volume from a node for some time,
	// and the driver reports no error. To do: wait, or ask the member's admin to check the
	// driver.
	ReasonDetaching = "Detaching"
	// ReasonAttachFailed: the driver cannot attach the volume to the node that the member
	// chose for the Pod. The message quotes it, and names the nodes that have the volume. To
	// do: ask the member's admin to check the driver and the node. Kubernetes tries again.
	ReasonAttachFailed = "AttachFailed"
	// ReasonDetachFailed: the driver cannot detach the volume from a node that no longer
	// needs it. The message quotes it. A Pod on another node may have to wait for that. To do:
	// ask the member's admin to check the driver and the node. Kubernetes tries again.
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
	// ReasonVolumeAdopted: the claim has the volume of an earlier claim of its name; or, on a
	// PersistentVolume that an admin created, Xylem gives it the member's volume that its
	// handle names. To do: nothing.
	ReasonVolumeAdopted = "VolumeAdopted"
	// ReasonExpansionPushed: Xylem requested the expansion of the volume in the member. To
	// do: nothing.
	ReasonExpansionPushed = "ExpansionPushed"
	// ReasonModificationPushed: Xylem asked the member to change the volume's attributes, or
	// to cancel such a change. To do: nothing; the claim's status shows how it goes.
	ReasonModificationPushed = "ModificationPushed"
	// ReasonHeldBack: the host's PV controller has many volumes to bind, and Xylem places
	// claims as fast as it binds them. To do: nothing; if it lasts, check
	// kube-controller-manager.
	ReasonHeldBack = "HeldBack"
	// ReasonPlacementWithdrawn: Xylem withdrew the claim from a member before a volume was
	// bound there. To do: nothing.
	ReasonPlacementWithdrawn = "PlacementWithdrawn"
	// ReasonPlacementMoved: the member could not satisfy the claim, as the message quotes,
	// and Xylem tries another one. Its Pods report it too. To do: nothing, or fix that
	// member.
	ReasonPlacementMoved = "PlacementMoved"
	// ReasonPlacementFailed: on Pods. No member could satisfy the Pod's claims, or no other
	// member can take them. The message quotes each. Xylem fails a Pod of a promise, so
	// that its owner re-creates it. To do: fix one of the members.
	ReasonPlacementFailed = "PlacementFailed"
	// ReasonPromiseFulfilled: the member has provisioned the disk of a promise. Its Pods
	// report it too. To do: nothing.
	ReasonPromiseFulfilled = "PromiseFulfilled"
	// ReasonPromiseBroken: the claim is Bound to a promise, and the member does not
	// provision the disk, or has lost it. The message quotes the member. To do: as for the
	// reason that the message begins with.
	ReasonPromiseBroken = "PromiseBroken"
	// ReasonVolumeReleased: no Pod uses the promise any more, and Xylem destroys its disk,
	// as the class says (xylem.io/release: WhenUnused). To do: nothing.
	ReasonVolumeReleased = "VolumeReleased"
)

// Reasons on Pods. They are those of the condition xylem.io/Pushed, and of events. A Pod also
// reports the reasons of its claims and its namespace, above.
const (
	// ReasonPushed: the Pod runs in the member, or is about to. The message has the UID of
	// its leaf Pod. To do: nothing.
	ReasonPushed = "Pushed"
	// ReasonWithdrawn: Xylem withdrew the Pod from the member; the message shows why. To do:
	// nothing.
	ReasonWithdrawn = "Withdrawn"
	// ReasonDaemonSet: Xylem does not push Pods of DaemonSets. To do: run the DaemonSet in
	// the member, or exclude nodes with the label xylem.io/virtual-node=true.
	ReasonDaemonSet = "DaemonSetNotPushed"
	// ReasonClaimNotBound: somebody bound the Pod to the node by hand, and a claim of it is
	// not bound. To do: let the scheduler place the Pod.
	ReasonClaimNotBound = "ClaimNotBound"
	// ReasonClaimForeign: the claim that the Pod's ephemeral volume needs exists already,
	// and does not belong to the Pod. To do: delete that claim, or rename the Pod.
	ReasonClaimForeign = "ClaimNotOfPod"
	// ReasonVolumeUnreachable: the Pod is on a node that cannot reach its volumes: one of
	// another member, or of the host itself. To do: let the scheduler place the Pod; for a
	// promise that may be used anywhere, in a host before Kubernetes 1.37, with nodeSelector
	// xylem.io/virtual-node: "true".
	ReasonVolumeUnreachable = "VolumeUnreachable"
	// ReasonVolumeAwaited: the Pod waited for a claim's leaf, and no longer does. To do:
	// nothing.
	ReasonVolumeAwaited = "VolumeAwaited"
	// ReasonPodUnsupported: the Pod sets fields that Xylem cannot push; the message names
	// them. To do: remove them (internal/mirror/FIELDS.md lists every field).
	ReasonPodUnsupported = "PodUnsupported"
	// ReasonSecretUnsupported: the Pod refers to a Secret of a type that is useless, or too
	// powerful, in another cluster. To do: use another type of Secret.
	ReasonSecretUnsupported = "SecretUnsupported"
	// ReasonReferenceMissing: the Pod needs a ConfigMap or Secret that its namespace in the
	// host does not have. To do: create it, or mark the reference as optional.
	ReasonReferenceMissing = "ReferenceMissing"
	// ReasonNamespaceRefused: the member rejects the creation of the Pod's namespace. To
	// do: its admin can allow it, or create the namespace and label it as the message describes.
	ReasonNamespaceRefused = "NamespaceRefusedByMember"
	// ReasonReferenceForbidden: the manager's account may not get a ConfigMap or Secret that
	// the Pod refers to. To do: list its namespace in the chart's rbac.secretNamespaces.
	ReasonReferenceForbidden = "ReferenceForbidden"
	// ReasonTolerationMissing: the Pod uses a claim of Xylem's, and tolerates the taint of no
	// virtual node. To do: add the toleration that the message has.
	ReasonTolerationMissing = "TolerationMissing"
	// ReasonNoCapacity: a claim of the Pod requests more than any member that suits the Pod
	// has. The message names what each member has. To do: request less, or add capacity.
	ReasonNoCapacity = "NoCapacity"
	// ReasonNodeSelectorMismatch: the Pod's nodeSelector or node affinity excludes every
	// member. To do: change it.
	ReasonNodeSelectorMismatch = "NodeSelectorMismatch"
	// ReasonCordoned: the virtual nodes that suit the Pod are cordoned. To do: uncordon one.
	ReasonCordoned = "MemberCordoned"
	// ReasonVolumesApart: no member can reach all volumes of the Pod. To do: use claims of one
	// member.
	ReasonVolumesApart = "VolumesApart"
	// ReasonNoMemberFits: every member lacks something that the Pod needs; the message has the
	// cause for each. To do: remove the cause for one of them.
	ReasonNoMemberFits = "NoMemberFits"
	// ReasonFieldsLeftOut: the Pod runs in the member without the fields that the message
	// names. To do: nothing, if it does not need them; internal/mirror/FIELDS.md has the causes.
	ReasonFieldsLeftOut = "FieldsLeftOut"
	// ReasonEphemeralContainersNotRun: somebody added ephemeral containers to a Pod that runs
	// in a member, as `kubectl debug` does, and Xylem could not add them there. To do: follow
	// the message, for example ask the member's admin to grant the right.
	ReasonEphemeralContainersNotRun = "EphemeralContainersNotRun"
	// ReasonEvicted: Xylem evicted the Pod, since its member is being deregistered. To do:
	// nothing, its owner creates another one.
	ReasonEvicted = "Evicted"
)

// Reasons of Pods that Xylem ended. They are in status.reason and in conditions. Where a
// kubelet has a reason for the same, it is the kubelet's.
const (
	// ReasonLeafVanished: the Pod's leaf was deleted in the member. Xylem never runs it
	// again silently. To do: nothing, its owner creates another one.
	ReasonLeafVanished = "LeafPodVanished"
	// ReasonPodIPHidden: the member reports a Pod IP that the host does not show: it is
	// outside the registration's spec.node.podCIDRs, or a special address such as a
	// link-local one. To do: if the address is right, add its range there.
	ReasonPodIPHidden = "PodIPHidden"
	// ReasonLeafEvicted: the member evicted the Pod; the message quotes it. To do: nothing,
	// its owner creates another one.
	ReasonLeafEvicted = "LeafPodEvicted"
	// ReasonTerminated: the Pod was deleted. To do: nothing.
	ReasonTerminated = "Terminated"
	// ReasonVolumeElsewhere: another Pod of the claim was scheduled to another member
	// first. To do: nothing, its owner creates another one, and the scheduler places it
	// there.
	ReasonVolumeElsewhere = "VolumeMadeElsewhere"
	// ReasonNodeAffinity: somebody bound the Pod to the node by hand, and its node selector
	// or affinity does not match. To do: let the scheduler place the Pod.
	ReasonNodeAffinity = "NodeAffinity"
	// ReasonTaintToleration: as NodeAffinity: the Pod does not tolerate a NoExecute taint.
	// To do: let the scheduler place the Pod.
	ReasonTaintToleration = "TaintToleration"
	// ReasonPodOSNotSupported: the Pod requires another operating system. To do: let the
	// scheduler place the Pod.
	ReasonPodOSNotSupported = "PodOSNotSupported"
	// ReasonPodFailed: of the conditions Ready and ContainersReady: Xylem ended the Pod. To
	// do: see its status.reason.
	ReasonPodFailed = "PodFailed"
	// ReasonContainerStatusUnknown: Xylem did not observe how the container ended. To do:
	// nothing.
	ReasonContainerStatusUnknown = "ContainerStatusUnknown"
	// ReasonReadinessGates: of the condition Ready: a readiness gate of the host is not
	// true. To do: check the controller that sets the gate.
	ReasonReadinessGates = "ReadinessGatesNotReady"
)

// Reasons of events on volumes of the host.
const (
	// ReasonClusterGone: the volume's member was deregistered. The data stay there, out of
	// reach. Its claim's condition xylem.io/Placed reports it too. To do: register the same
	// cluster again, under any name, to use the volume again.
	ReasonClusterGone = "ClusterGone"
	// ReasonAbandoned: an admin abandoned the volume; its data stay in the member. To do:
	// nothing.
	ReasonAbandoned = "Abandoned"
	// ReasonReclaimPolicyUnsupported: the claim of a volume was deleted, and the volume has
	// a reclaim policy that Xylem does not support: Recycle. Xylem keeps the data. To do:
	// set the policy to Delete or Retain.
	ReasonReclaimPolicyUnsupported = "ReclaimPolicyUnsupported"
	// ReasonReleaseRefused: no Pod uses a promise that is released with its last Pod, but
	// Xylem keeps its disk, since the policy in the host or in the member is Retain. Or the
	// claim of a volume that the member had before is gone, and no Pod used it. To do: follow
	// the message: run Pods in that member, set the policy to Delete, or use the volume again.
	ReasonReleaseRefused = "ReleaseRefused"
)

// Reasons on virtual nodes. They are those of the condition Ready (beside those of the registration's
// Connected), of pressures that only the member's nodes measure, and of events.
const (
	// ReasonNoReadyNodes: the member responds, but none of its nodes is Ready. To do: check
	// its nodes.
	ReasonNoReadyNodes = "NoReadyNodes"
	// ReasonPodsKept: the member is away, and the node is Ready anyway, so that the host
	// evicts none of its Pods (spec.node.whenAway: Keep). The taint xylem.io/member-away keeps
	// new Pods off; the condition xylem.io/MemberAway has the cause. To do: bring the member back.
	ReasonPodsKept = "PodsKept"
	// ReasonRegistrationGone: the node's registration was deleted while Pods are bound to
	// the node. To do: register the cluster again, or delete the Pods and the node.
	ReasonRegistrationGone = "RegistrationGone"
	// ReasonNotMeasured: the member's nodes measure this. To do: nothing.
	ReasonNotMeasured = "NotMeasured"
	// ReasonNetworkOfMember: Pods on this node use the member's network. To do: nothing.
	ReasonNetworkOfMember = "NetworkOfMember"
)

// Reasons of orphaned volumes. They are in a registration's status.orphans, and each has
// one event OrphanedVolume. Nothing destroys these volumes.
const (
	// ReasonOrphanedVolume: of the event on the registration: a volume in the member has no
	// root. To do: re-create its claim with spec.volumeName to use it again, or set its
	// policy to Delete there and delete its leaf claim.
	ReasonOrphanedVolume = "OrphanedVolume"
	// ReasonRootGone: the volume's claim and its PersistentVolume in the host no longer
	// exist. To do: as for OrphanedVolume.
	ReasonRootGone = "RootGone"
	// ReasonRootReplaced: as RootGone, and another claim now has the claim's name. To do:
	// as for OrphanedVolume.
	ReasonRootReplaced = "RootReplaced"
	// ReasonWithdrawnLate: a provisioner finished the volume after its claim had been
	// withdrawn. Nobody ever used it. To do: delete it there.
	ReasonWithdrawnLate = "WithdrawnLate"
)

// Reasons of events on VolumeSnapshots. The message is also in status.error of the snapshot
// and of its content. Nothing of them is destroyed.
const (
	// ReasonSnapshotClassNotFound: the member has no VolumeSnapshotClass that the snapshot's
	// class maps to. To do: create the class there, or map one in the registration
	// (spec.storage.snapshotClasses).
	ReasonSnapshotClassNotFound = "SnapshotClassNotFound"
	// ReasonSnapshotClassMismatch: the member's class is of another driver than the claim's
	// volume. To do: map a class of that driver.
	ReasonSnapshotClassMismatch = "SnapshotClassMismatch"
	// ReasonSnapshotsUnsupported: the member does not serve snapshots, or does not let Xylem
	// read them. To do: install the VolumeSnapshot CustomResourceDefinitions and the
	// snapshot-controller there, and grant the rights of config/member. Xylem notices it.
	ReasonSnapshotsUnsupported = "SnapshotsUnsupported"
	// ReasonSnapshotSourceInvalid: the content's source is not the volume of the snapshot's
	// claim, or that is no volume of Xylem's; or the content was created for a snapshot that
	// already exists. To do: use a class of the driver that the claim's volume has.
	ReasonSnapshotSourceInvalid = "SnapshotSourceInvalid"
	// ReasonSnapshotSourceNotReady: the claim has no disk in a member yet. To do: follow
	// the message. Xylem takes the snapshot as soon as the disk exists.
	ReasonSnapshotSourceNotReady = "SnapshotSourceNotReady"
	// ReasonSnapshotLost: the member no longer has the snapshot, or the object by which it
	// can be restored. Xylem takes no other one in its place. To do: follow the message.
	ReasonSnapshotLost = "SnapshotLost"
	// ReasonSnapshotReplaced: the member has another snapshot under the name of this one.
	// Xylem does not use it, and keeps the data of both. To do: rescue the data that you
	// need in the member, then delete the snapshot.
	ReasonSnapshotReplaced = "SnapshotReplaced"
	// ReasonSnapshotTerminating: somebody deleted the snapshot in the member, of which Xylem
	// keeps the data, or the VolumeSnapshotContent before it was ready. To do: restore what
	// you need, then delete the snapshot.
	ReasonSnapshotTerminating = "SnapshotTerminating"
	// ReasonSnapshotAbandoned: the snapshot's member was deregistered, or an admin abandoned
	// the snapshot. Its data is still in the member. To do: register the cluster again, or
	// delete the snapshot.
	ReasonSnapshotAbandoned = "SnapshotAbandoned"
	// ReasonOrphanedSnapshot: of the event on the registration: no content in the host
	// represents a snapshot in the member. To do: as for OrphanedSnapshots.
	ReasonOrphanedSnapshot = "OrphanedSnapshot"
)

// Reasons of events on other objects.
const (
	// ReasonForcedDeregistration: on the registration: Xylem abandoned the member without
	// reaching it; the message lists what is left there. To do: clean that up if the member
	// comes back.
	ReasonForcedDeregistration = "ForcedDeregistration"
	// ReasonEndpointsInMember: on a Service of the host, once: Pods that it selects run in a
	// member. Xylem connects no networks. To do: set spec.node.podCIDRs of the registration if
	// the networks are connected, and check the route.
	ReasonEndpointsInMember = "EndpointsInMember"
	// ReasonNotOfXylem: on a CSIDriver, csi.xylem.io or mock.csi.virtual-kubelet.io: Xylem did
	// not create it, and it differs from what Xylem needs. To do: delete it, so that Xylem
	// creates its own.
	ReasonNotOfXylem = "NotOfXylem"
)
