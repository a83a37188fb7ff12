package v1alpha1

// Every reason of an event, of a condition or of a Pod's status that Xylem writes is a constant of
// this package, and internal/REASONS.md is generated from the comments: each describes what the
// reason means and, after "To do:", what the user can do.

// Reasons why a claim is not placed or bound yet, in its conditions xylem.io/Placed and
// xylem.io/Placeable, and in events. Pods that use a promise also report them, after the claim's
// name.
const (
	// ReasonRefusedByMember: the member's API server rejects an object that Xylem pushes, or a change
	// to a running Pod or to a volume, because of a quota, Pod Security, an admission policy, a webhook or
	// a missing permission, or because a webhook does not respond. The message quotes the member's
	// response. A running Pod runs without the change, and Xylem retries. To do: for a running Pod or a
	// volume, undo the change, or ask the member's admin to remove the cause. Otherwise, do nothing if
	// another member is suitable: Xylem tries that member after the class's xylem.io/placement-timeout. If
	// none is, remove the cause that the message names.
	ReasonRefusedByMember = "RefusedByMember"
	// ReasonRefusedByHost: the host's API server repeatedly rejects a write that Xylem must make for
	// the claim or Pod, because of an admission policy, a webhook or a missing permission. The message
	// quotes the API server's response, and Xylem retries. To do: ask an admin of the host to exempt
	// Xylem from the policy or webhook that the message names, to repair the webhook, or to grant the
	// permission.
	ReasonRefusedByHost = "RefusedByHost"
	// ReasonNameTaken: the member already has an object with the same name, which Xylem did not create,
	// or which has lost Xylem's labels and annotations, or, for a VolumeSnapshot, which belongs to an
	// earlier one. Xylem does not change it. For ConfigMaps and Secrets, the Pods report the conflict. To
	// do: follow the message, or use another name.
	ReasonNameTaken = "NameTaken"
	// ReasonClassNotFound: the member has no StorageClass that the claim's class maps to. To do:
	// create the class in the member, or map the claim's class to another one in the registration
	// (spec.storage.classes).
	ReasonClassNotFound = "MemberClassNotFound"
	// ReasonPodRefused: the member's API server rejects the Pod that the claim waits for. To do: as
	// for RefusedByMember.
	ReasonPodRefused = "PodRefusedByMember"
	// ReasonPodUnschedulable: the member's scheduler finds no node for the Pod. The message quotes
	// the scheduler. To do: nothing, if another member is suitable. Otherwise, add capacity to the
	// member, or label its nodes as the Pod requires.
	ReasonPodUnschedulable = "LeafPodUnschedulable"
	// ReasonProvisioningFailed: the member's provisioner reports a failure. The message quotes the
	// provisioner. To do: nothing, if another member is suitable. Otherwise, check the driver in
	// the member.
	ReasonProvisioningFailed = "ProvisioningFailed"
	// ReasonProvisionerSilent: the member requested the volume from its provisioner, which has neither
	// created it nor reported a failure for some time (--silent-after). The provisioner may not run,
	// or may not be installed. Xylem tries no other member, because this one may still create the
	// volume. To do: ask the member's admin to check that the driver's controller runs, and that the
	// StorageClass in the member names its provisioner. If the driver is only slow, do nothing.
	ReasonProvisionerSilent = "ProvisionerSilent"
	// ReasonProvisioningSlow: the member's provisioner has repeatedly failed, for some time
	// (--silent-after), with errors after which the volume may still be created. Xylem tries no other
	// member. To do: ask the member's admin about the failure that the message quotes.
	ReasonProvisioningSlow = "ProvisioningSlow"
	// ReasonControllerManagerSilent: the member has not requested the volume from a provisioner for
	// some time (--silent-after). To do: ask the member's admin to check that its
	// kube-controller-manager runs.
	ReasonControllerManagerSilent = "ControllerManagerSilent"
	// ReasonSchedulerSilent: the member's scheduler has not processed a Pod that uses the claim for
	// some time (--silent-after). To do: ask the member's admin to check that the scheduler that the
	// message names runs.
	ReasonSchedulerSilent = "SchedulerSilent"
	// ReasonOutOfSpace: the member's driver reports that it is out of space. To do: nothing, if
	// another member is suitable. Otherwise, free or add capacity in the member.
	ReasonOutOfSpace = "OutOfSpace"
	// ReasonNotScheduled: the claim is selected for a member in which the scheduler does not place the
	// claim's Pod, for example because the member was cordoned, or no node suits a claim without a Pod.
	// To do: nothing, if another member is suitable: Xylem tries that member after the class's
	// xylem.io/placement-timeout. The Pod's events show the cause. Without a Pod, follow the message.
	ReasonNotScheduled = "NotScheduledThere"
	// ReasonNamespaceConflict: the member has a namespace with the same name that does not belong
	// to this host. To do: ask the member's admin to label the namespace xylem.io/host=<host
	// cluster ID>, or use another namespace.
	ReasonNamespaceConflict = "NamespaceConflict"
	// ReasonNamespaceTerminating: the member is deleting its namespace with the same name. To do:
	// nothing. Xylem re-creates the namespace after the deletion.
	ReasonNamespaceTerminating = "NamespaceTerminating"
	// ReasonNamespaceRefused: the member rejects the creation of the namespace, because of an
	// admission policy or a webhook. The message quotes the member's response, and Xylem retries. To
	// do: nothing, if another member is suitable. Otherwise, ask the member's admin to allow the
	// namespace, or to create it and label it as the message describes.
	ReasonNamespaceRefused = "NamespaceRefusedByMember"
	// ReasonNamespaceNotAdmitted: the member's registration does not admit the namespace, because
	// of its name or labels. Objects of the namespace that are already in the member stay there. To
	// do: use another namespace, or ask an admin to change spec.namespaces of the registration or
	// the namespace's labels.
	ReasonNamespaceNotAdmitted = "NamespaceNotAdmitted"
	// ReasonNamespaceReserved: Xylem pushes nothing from or into the namespaces of Kubernetes
	// (kube-*) and of Xylem itself. To do: use another namespace.
	ReasonNamespaceReserved = "NamespaceReserved"
	// ReasonMemberAway: the selected member, or the member that has the Pod or its volume, is not
	// connected. The Ready condition of that member's Pods and Node also has this reason. To do:
	// follow the message; `kubectl describe clusterregistration` shows the cause.
	ReasonMemberAway = "MemberAway"
	// ReasonPlacedElsewhere: another member has a volume for the claim, or may have one. To do: run
	// the Pod in the member that has, or may have, the volume. If that member is lost permanently,
	// abandon the volume or force the deregistration, as the message describes.
	ReasonPlacedElsewhere = "PlacedElsewhere"
	// ReasonClassKeepsOff: the class's allowedTopologies exclude the member whose node was
	// selected. To do: re-create the Pod on another node, or change the class.
	ReasonClassKeepsOff = "ClassKeepsOff"
	// ReasonClassInvalid: the class has unknown parameters with the prefix xylem.io/, or parameters
	// with invalid values. An event on the class also reports this. Or only the annotation
	// volume.beta.kubernetes.io/storage-class names the claim's class, which makes kube-scheduler 1.37
	// panic. To do: delete the class and create a correct one, or set spec.storageClassName of the
	// claim as the message describes.
	ReasonClassInvalid = "ClassInvalid"
	// ReasonImmediate: the class uses mirror mode but does not wait for a consumer. To do: use a
	// class with volumeBindingMode WaitForFirstConsumer, or a promise class (xylem.io/provisioning:
	// promise).
	ReasonImmediate = "ImmediateUnsupported"
	// ReasonSelectedNode: the node that was selected for the claim is not a virtual node. Xylem
	// removes the selection. Or the Pod's node, which would represent a group of a member's nodes, does not
	// exist or is incomplete. To do: find out what assigns the Pod to the node that the message
	// names.
	ReasonSelectedNode = "SelectedNodeNotVirtual"
	// ReasonNoMembers: no cluster is registered. To do: register a cluster.
	ReasonNoMembers = "NoMembers"
	// ReasonNoneConnected: none of the registered clusters is connected. To do: `kubectl
	// get clusterregistrations` shows the causes.
	ReasonNoneConnected = "NoMemberConnected"
	// ReasonNotOffered: a Pod is waiting, and no member has the class. To do: create the class in a
	// member, or map the claim's class to another one in the member's registration
	// (spec.storage.classes). The message shows what each member lacks.
	ReasonNotOffered = "ClassNotOffered"
	// ReasonCapacityUnpublished: a Pod is waiting, and the members that have the class cannot be
	// selected, because their CSIStorageCapacities do not exist in the host, for example because a
	// policy or a quota in the host rejects them. To do: see the events of the registration.
	ReasonCapacityUnpublished = "CapacityUnpublished"
	// ReasonQuantityOutOfRange: the claim requests an amount of storage that is longer than 128 bytes,
	// or has an exponent beyond ±100. To do: correct spec.resources of the claim.
	ReasonQuantityOutOfRange = "QuantityOutOfRange"
	// ReasonDataSourceUnsupported: the claim has a data source that Xylem cannot use: one in
	// another namespace, one whose volume is not in a member, or a kind that the registrations do
	// not list. To do: use another data source, or have an admin list the source's kind in the
	// registration (spec.storage.dataSources). Otherwise, remove the data source from the claim,
	// and copy the data in a Pod.
	ReasonDataSourceUnsupported = "DataSourceUnsupported"
	// ReasonSourceNotReady: the source claim or snapshot does not exist, has no volume yet, or is
	// not ready. To do: create the source. If the source is a claim without a volume, create a Pod
	// that uses this claim. When the source is ready, Xylem creates the new claim in the source's
	// member. `kubectl describe volumesnapshot` shows why a snapshot is not ready.
	ReasonSourceNotReady = "SourceNotReady"
	// ReasonSourceElsewhere: Xylem can create the claim only in the member that has its source, but
	// the Pod, the class or another claim of the Pod excludes that member. To do: change the Pod,
	// or use a source in another member.
	ReasonSourceElsewhere = "SourceElsewhere"
	// ReasonSourceGone: the source claim or snapshot was deleted, is being deleted, or was replaced
	// by another one of the same name, and Xylem does not copy that one. To do: delete the claim and
	// create it again from a source that exists.
	ReasonSourceGone = "SourceGone"
	// ReasonSourceMismatch: the claim requests less capacity than its source has, another
	// volumeMode, or a class of another driver; or the volume in the member was not created from
	// the source. To do: delete the claim and create it again with the size, volumeMode and class
	// of its source.
	ReasonSourceMismatch = "SourceMismatch"
	// ReasonAttributesClassNotFound: the member does not have the VolumeAttributesClass that the
	// claim's class maps to, or does not let Xylem read it. If the claim has no volume yet, Xylem
	// tries another suitable member. To do: create the class in the member, or map the claim's
	// class to another one in the registration (spec.storage.attributesClasses).
	ReasonAttributesClassNotFound = "AttributesClassNotFound"
	// ReasonAttributesClassMismatch: the claim's VolumeAttributesClass does not belong to driver
	// csi.xylem.io in the host, or to the volume's driver in the member. To do: use another
	// VolumeAttributesClass, or map the claim's class to another one in the registration
	// (spec.storage.attributesClasses).
	ReasonAttributesClassMismatch = "AttributesClassMismatch"
	// ReasonModifyUnsupported: the claim has no VolumeAttributesClass, but its volume in the member
	// has one. Kubernetes does not allow the removal of the class. To do: set the claim's
	// spec.volumeAttributesClassName to the class that the volume should have.
	ReasonModifyUnsupported = "ModifyVolumeUnsupported"
	// ReasonAdoptionRefused: a PersistentVolume that an admin created requests a member's volume that
	// it cannot represent: the volume does not exist, is in use, or does not match. Reported on the
	// PersistentVolume and on the claim that is bound to it. To do: follow the message.
	ReasonAdoptionRefused = "AdoptionRefused"
	// ReasonConsentMissing: a PersistentVolume that an admin created requests a volume of a member
	// whose admin has not consented. Reported on the PersistentVolume and on the claim that is
	// bound to it. To do: ask the member's admin to label the volume xylem.io/host=<host cluster
	// ID>. The message shows the command.
	ReasonConsentMissing = "ConsentMissing"
	// ReasonSelectorUnsupported: a claim of a promise class has a selector, which can only select
	// existing volumes. To do: remove spec.selector.
	ReasonSelectorUnsupported = "SelectorUnsupported"
	// ReasonVolumeNameUnsupported: a claim of a promise class requests a volume by name. To do:
	// remove spec.volumeName.
	ReasonVolumeNameUnsupported = "VolumeNameUnsupported"
	// ReasonVolumeNotFound: the claim names a PersistentVolume that does not exist in the host.
	// Kubernetes reports nothing in this case. To do: follow the message.
	ReasonVolumeNotFound = "VolumeNotFound"
	// ReasonVolumeLost: the claim is bound to a volume that the member no longer has, or the volume that
	// the member provisioned for the claim is gone. Xylem does not create a replacement. On a
	// PersistentVolume in the host: its volume has been missing since the member was restored, or is
	// missing after Xylem did not protect the PersistentVolume (for example, because the cluster was
	// deregistered), and Xylem has no record that it destroyed the disk. To do: restore the volume in the member, or
	// delete the claim.
	ReasonVolumeLost = "VolumeLost"
	// ReasonVolumeTerminating: somebody deleted the claim's volume in the member or, before the
	// claim was bound to it, its PersistentVolume in the host. Kubernetes keeps the volume while a
	// bound claim uses it, and Xylem keeps its disk. To do: copy the data that you need, then
	// delete the claim.
	ReasonVolumeTerminating = "VolumeTerminating"
	// ReasonVolumeReplaced: the volume in the member has the name of the claim's volume but a
	// different UID. Xylem does not use the new volume, and keeps the data of both. To do: copy the
	// data that you need from the member, then delete the claim.
	ReasonVolumeReplaced = "VolumeReplaced"
	// ReasonVolumeKept: Xylem does not delete a claim in the member, because a PersistentVolume in
	// the host represents, or may represent, its volume. Reported on that PersistentVolume if the
	// claim no longer exists. To do: follow the message.
	ReasonVolumeKept = "VolumeKept"
	// ReasonVolumeMismatch: the claim and its counterpart are bound to different volumes, another
	// claim in the member uses the volume, somebody removed Xylem's stamp from the volume, the claimRef
	// of the PersistentVolume that represents the claim's volume does not name the claim, two
	// PersistentVolumes in the host represent the volume (reported on one of them if the claim no
	// longer exists), or the requested volume does not match the claim. To do: follow the message.
	// Find out which volume has the data before you delete one, or change the claim so that it
	// matches the volume.
	ReasonVolumeMismatch = "VolumeMismatch"
	// ReasonSurplusVolume: the member has a second volume for the claim. Xylem does not use this
	// volume, and keeps its data. To do: if nobody needs the data of the second volume, ask the
	// member's admin to delete the claim or volume that the message names.
	ReasonSurplusVolume = "SurplusVolume"
	// ReasonAmbiguousVolume: several members have a volume with the name that the claim requests.
	// To do: ask the members' admins to delete all of the volumes that the message names except the
	// right one.
	ReasonAmbiguousVolume = "AmbiguousVolume"
	// ReasonAdoptionUnconfirmed: the volume that the claim requests was abandoned, or its namespace
	// was re-created; or a member has a volume for the claim, although Xylem has no record that it
	// placed the claim there. To do: ask an admin to allow the use of the volume with the annotation
	// xylem.io/adopt on the registration. After a restore of the host, confirm the restore first.
	ReasonAdoptionUnconfirmed = "AdoptionUnconfirmed"
	// ReasonPlacementUnconfirmed: the claim is older than the last restore of the host, so it may
	// already have been placed in another member. That member has a counterpart of the claim, or
	// Xylem cannot check that member. To do: follow the message: confirm the restore, make the
	// member reachable, or deregister it. A claim without data can be re-created instead.
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
	// ReasonDetached: the volume is not attached to any node of the member, because no Pod in the
	// member needs the volume. To do: nothing.
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
	// The message quotes the driver. A Pod on another node may have to wait until the volume is
	// detached. Kubernetes retries. To do: ask the member's admin to check the driver and the node.
	ReasonDetachFailed = "DetachFailed"
	// ReasonAttachmentsUnreadable: the member does not let Xylem read its VolumeAttachments. To do:
	// in the member, upgrade the chart xylem-member or apply config/member.
	ReasonAttachmentsUnreadable = "AttachmentsUnreadable"
)

// Reasons of events about a claim.
const (
	// ReasonVolumeMirrored: the member has provisioned the volume. To do: nothing.
	ReasonVolumeMirrored = "VolumeMirrored"
	// ReasonVolumeRecreated: the host's PersistentVolume was deleted. Xylem created it again for
	// the member's volume, with policy Retain. To do: if the data should be deleted with the claim,
	// set the reclaim policy of the PersistentVolume to Delete.
	ReasonVolumeRecreated = "VolumeRecreated"
	// ReasonNotShared: the volume is on a shared backend, but Xylem cannot record its source exactly,
	// so only Pods in the volume's own member can use it. To do: nothing, or use another driver.
	ReasonNotShared = "NotShared"
	// ReasonVolumeAdopted: the claim uses the volume of an earlier claim of the same name. If the
	// event is on a PersistentVolume that an admin created, that PersistentVolume now represents
	// the member's volume that its handle names. To do: nothing.
	ReasonVolumeAdopted = "VolumeAdopted"
	// ReasonExpansionPushed: Xylem requested the expansion of the volume in the member. To
	// do: nothing.
	ReasonExpansionPushed = "ExpansionPushed"
	// ReasonModificationPushed: Xylem asked the member to change the volume's attributes, or to
	// cancel such a change. To do: nothing; the claim's status shows the progress.
	ReasonModificationPushed = "ModificationPushed"
	// ReasonHeldBack: the host's PV controller has many volumes to bind, and Xylem places claims
	// only as fast as the controller binds them. To do: nothing. If placement remains slow, check
	// kube-controller-manager.
	ReasonHeldBack = "HeldBack"
	// ReasonPlacementWithdrawn: Xylem withdrew the claim from a member before a volume was
	// bound there. To do: nothing.
	ReasonPlacementWithdrawn = "PlacementWithdrawn"
	// ReasonPlacementMoved: the member could not satisfy the claim, and Xylem tries another one.
	// The message quotes the member. Also reported on the claim's Pods. To do: nothing, or remove
	// the cause in the member that the message quotes.
	ReasonPlacementMoved = "PlacementMoved"
	// ReasonPlacementFailed: no member could satisfy the Pod's claims, or no other member can take
	// them. The message quotes each member. If the Pod uses a promise, Xylem sets the Pod's phase
	// to Failed, so that its owner re-creates it. Reported on Pods. To do: remove the cause in one
	// of the members.
	ReasonPlacementFailed = "PlacementFailed"
	// ReasonPromiseFulfilled: the member has provisioned the disk of a promise. Also reported on
	// the Pods. To do: nothing.
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
	// ReasonWithdrawn: Xylem withdrew the Pod, or a request for its volume, from the member. The message
	// shows why. To do: nothing.
	ReasonWithdrawn = "Withdrawn"
	// ReasonDaemonSet: Xylem does not push Pods of DaemonSets. To do: run the DaemonSet in
	// the member, or exclude nodes with the label xylem.io/virtual-node=true.
	ReasonDaemonSet = "DaemonSetNotPushed"
	// ReasonClaimNotBound: somebody bound the Pod to the node manually, but one of its claims is
	// not bound. To do: let the scheduler place the Pod.
	ReasonClaimNotBound = "ClaimNotBound"
	// ReasonClaimForeign: the claim for the Pod's ephemeral volume already exists and does not
	// belong to the Pod. To do: delete the existing claim, or rename the Pod.
	ReasonClaimForeign = "ClaimNotOfPod"
	// ReasonVolumeUnreachable: the Pod is on a node of another member, or of the host itself, which
	// cannot reach the Pod's volumes. To do: let the scheduler place the Pod. If the Pod uses a
	// promise that any member may fulfill, and the host runs a Kubernetes version before 1.37, set
	// nodeSelector xylem.io/virtual-node: "true".
	ReasonVolumeUnreachable = "VolumeUnreachable"
	// ReasonBackendMismatch: the Pod is in a member that shares the backend of the claim's volume, but
	// the registration names another driver for the backend, or does not list the member's class for
	// the claim; or that class names Secrets with a template that depends on the volume. To do: correct
	// spec.storage.shared of the registration, or the class.
	ReasonBackendMismatch = "BackendMismatch"
	// ReasonVolumeAwaited: an earlier problem of the Pod is solved, and the Pod now waits for a
	// claim's volume in the member. To do: nothing.
	ReasonVolumeAwaited = "VolumeAwaited"
	// ReasonPodUnsupported: the Pod sets fields that Xylem cannot push, or is too large. The message names
	// the fields, or the limit. To do: remove the fields that the message names
	// (internal/mirror/FIELDS.md lists every field), or divide the Pod.
	ReasonPodUnsupported = "PodUnsupported"
	// ReasonSecretUnsupported: the Pod refers to a Secret of a type that is useless or too powerful
	// in another cluster. To do: use another type of Secret.
	ReasonSecretUnsupported = "SecretUnsupported"
	// ReasonReferenceTooLarge: the Pod refers to a ConfigMap or Secret that would take too much of the
	// manager's memory. If a member already has a copy, the copy keeps its earlier contents. To do:
	// remove entries, or divide the object into several smaller ones.
	ReasonReferenceTooLarge = "ReferenceTooLarge"
	// ReasonReferenceMissing: the Pod needs a ConfigMap or Secret that its namespace in the host
	// does not have. To do: create the ConfigMap or Secret in the host, or mark the reference as
	// optional.
	ReasonReferenceMissing = "ReferenceMissing"
	// ReasonReferenceAwaited: the host now has all ConfigMaps and Secrets that the Pod needs, and the
	// Pod waits for their copies in the member. To do: nothing. If the member rejects a copy, an
	// event on the Pod shows why.
	ReasonReferenceAwaited = "ReferenceAwaited"
	// ReasonReferenceForbidden: the manager's account is not allowed to get a ConfigMap or Secret
	// that the Pod refers to. To do: add the namespace to the chart's rbac.secretNamespaces.
	ReasonReferenceForbidden = "ReferenceForbidden"
	// ReasonNodeIdentityMissing: the Pod needs a token for its ServiceAccount, or a Secret, that Xylem gets from
	// the host as the virtual node, and the host does not let the manager act as this node. To do: run
	// the `kubectl xylem register` command in the message, which creates the ClusterRole. The host needs Kubernetes 1.36 or
	// later.
	ReasonNodeIdentityMissing = "NodeIdentityMissing"
	// ReasonTokenRefused: the host does not issue a token for the Pod's ServiceAccount. The message has the host's
	// response. To do: correct the ServiceAccount or the Pod's projected volumes.
	ReasonTokenRefused = "TokenRefused"
	// ReasonTolerationMissing: the Pod uses a claim of one of Xylem's classes, but does not
	// tolerate the taint of any virtual node. To do: add the toleration that the message shows.
	ReasonTolerationMissing = "TolerationMissing"
	// ReasonNoCapacity: a claim of the Pod requests more capacity than any suitable member has. The
	// message shows how much each member has. To do: request less, or add capacity in a member.
	ReasonNoCapacity = "NoCapacity"
	// ReasonNodeSelectorMismatch: the Pod's nodeSelector or node affinity excludes every member. To
	// do: change the Pod's nodeSelector or node affinity.
	ReasonNodeSelectorMismatch = "NodeSelectorMismatch"
	// ReasonCordoned: all virtual nodes that are suitable for the Pod are cordoned. To do: uncordon
	// a virtual node.
	ReasonCordoned = "MemberCordoned"
	// ReasonMemberLeaving: the only member that can reach the Pod's volumes, or that the Pod is bound
	// to, is being deregistered. To do: register the member again, or let the scheduler choose another
	// member.
	ReasonMemberLeaving = "MemberLeaving"
	// ReasonVolumesApart: no member can reach all volumes of the Pod. To do: use claims whose volumes
	// are in the same member.
	ReasonVolumesApart = "VolumesApart"
	// ReasonNoMemberFits: every member lacks something that the Pod needs, and the message shows the
	// cause for each member. Or the host's scheduler excludes virtual nodes because of a rule, such as
	// anti-affinity by host name: each member is one node for it. To do: follow the message.
	ReasonNoMemberFits = "NoMemberFits"
	// ReasonFieldsLeftOut: the Pod runs in the member without the fields that the message names. To
	// do: nothing, if the Pod does not need these fields. internal/mirror/FIELDS.md explains why
	// Xylem does not push them.
	ReasonFieldsLeftOut = "FieldsLeftOut"
	// ReasonEphemeralContainersNotRun: somebody added ephemeral containers to a Pod that runs in a
	// member, as `kubectl debug` does, and Xylem could not add them to the Pod in the member. To
	// do: follow the message. For example, ask the member's admin to grant the permission.
	ReasonEphemeralContainersNotRun = "EphemeralContainersNotRun"
	// ReasonNotResized: somebody resized a Pod that runs in a member, as `kubectl patch --subresource
	// resize` does, and the member rejected or changed the resize, so the Pod in the member has other
	// resources. If its node lacks free resources, the condition PodResizePending reports it instead. To do:
	// follow the message. For example, resize the Pod to what the member allows.
	ReasonNotResized = "NotResized"
	// ReasonLeafPodGated: a program in the member, such as a queue, added scheduling gates to the Pod
	// there, and the member does not schedule the Pod until this program removes them. To do:
	// wait, or ask the member's admin about the program.
	ReasonLeafPodGated = "LeafPodGated"
	// ReasonContainersAdded: the Pod's own containers have finished, but containers that a program in
	// the member added to the Pod still run, so the Pod does not finish. The host does not show
	// these containers. To do: exempt the Pod from this program, or ask the member's admin to add
	// such containers as restartable init containers.
	ReasonContainersAdded = "ContainersAdded"
	// ReasonEvicted: Xylem evicted the Pod, because its member is being deregistered. To do:
	// nothing. The Pod's owner creates another Pod.
	ReasonEvicted = "Evicted"
)

// Reasons of Pods that Xylem ended. They are in status.reason and in conditions. If the kubelet has
// a reason for the same case, Xylem uses that reason.
const (
	// ReasonLeafVanished: the Pod's leaf was deleted in the member. Xylem never silently runs the
	// Pod again. To do: nothing. The Pod's owner creates another Pod.
	ReasonLeafVanished = "LeafPodVanished"
	// ReasonBudgetNotEnforced: a drain of nodes in a member does not respect a PodDisruptionBudget of the host. Reported
	// on the budget, or, if the member lets Xylem create no budgets, in the registration's condition Synced. To do:
	// follow the message.
	ReasonBudgetNotEnforced = "BudgetNotEnforced"
	// ReasonPodIPHidden: the member reports a Pod IP that the host does not show, because the
	// address is outside the registration's spec.node.podCIDRs or is special, such as a link-local
	// address. To do: if the address is correct, add its range to spec.node.podCIDRs of the
	// registration.
	ReasonPodIPHidden = "PodIPHidden"
	// ReasonLeafEvicted: the member evicted the Pod, or is about to. The message quotes the member. To do: nothing.
	// The Pod's owner creates another Pod.
	ReasonLeafEvicted = "LeafPodEvicted"
	// ReasonTerminated: the Pod was deleted. To do: nothing.
	ReasonTerminated = "Terminated"
	// ReasonVolumeElsewhere: another Pod that uses the claim was scheduled to another member first.
	// To do: nothing. The Pod's owner creates another Pod, and the scheduler places the new Pod in
	// the member that has the volume.
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
	// ReasonClusterGone: the volume's member was deregistered. The data is still in that cluster,
	// but Xylem cannot reach it. The claim's condition xylem.io/Placed has the same reason. To do:
	// to use the volume again, register the same cluster again, under any name.
	ReasonClusterGone = "ClusterGone"
	// ReasonAbandoned: an admin abandoned the volume. Its data is still in the member. To do:
	// nothing.
	ReasonAbandoned = "Abandoned"
	// ReasonStillNeeded: the volume's claim, or the VolumeSnapshot, was deleted, but its data is still
	// needed: claims that are bound to promises will be created from it, or other members have copies of
	// the shared volume. Xylem destroys it once nobody needs it. To do: follow the message. Let Pods use
	// the claims, or delete the claims. If a member that has a copy is away, make it reachable, or
	// deregister it. If a copy's PersistentVolume does not get policy Retain again, ask the member's admin
	// to set it.
	ReasonStillNeeded = "StillNeeded"
	// ReasonReclaimPolicyUnsupported: the volume's claim was deleted, but Xylem does not support
	// the volume's reclaim policy, Recycle. Xylem keeps the data. To do: set the volume's reclaim
	// policy to Delete or Retain.
	ReasonReclaimPolicyUnsupported = "ReclaimPolicyUnsupported"
	// ReasonReleaseRefused: no Pod uses a promise that is released with its last Pod, but Xylem
	// keeps its disk, because the policy in the host or in the member is Retain. Or the claim of an
	// adopted volume was deleted before any Pod used it. To do: follow the message. Run Pods in the
	// member that has the volume, set the volume's reclaim policy to Delete, or use the volume
	// again.
	ReasonReleaseRefused = "ReleaseRefused"
	// ReasonLastClaimLost: the host was restored from a backup, and may have lost the claim that used
	// the volume last. The volume may have newer data than the backup, so Xylem has set the reclaim
	// policy of its PersistentVolume in the host to Retain. To do: check the data before you set the
	// policy to Delete again.
	ReasonLastClaimLost = "LastClaimLost"
)

// Reasons on virtual nodes. They are in the condition Ready (along with the reasons of the
// registration's Connected condition), in the pressure conditions that only the member's nodes
// measure, and in events.
const (
	// ReasonNoReadyNodes: the member responds, but none of its nodes is Ready. To do: check the
	// member's nodes.
	ReasonNoReadyNodes = "NoReadyNodes"
	// ReasonNoUsableNodes: all Ready nodes of the member are cordoned or tainted, so the virtual node
	// has no capacity for new Pods. To do: uncordon a node in the member, or remove its taint; for
	// Pods that tolerate the taint, set spec.node.capacity in the ClusterRegistration.
	ReasonNoUsableNodes = "NoUsableNodes"
	// ReasonPodsKept: the member is away, but the node stays Ready, so that the host does not evict
	// its Pods (spec.node.whenAway: Keep). The taint xylem.io/member-away keeps new Pods off the
	// node. To do: remove the cause that the Node's condition xylem.io/MemberAway shows.
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
	// registration. To do: to use the volume again, re-create its claim with spec.volumeName. To
	// destroy it, set the volume's reclaim policy to Delete in the member, then delete the leaf
	// claim.
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
	// ReasonSnapshotClassNotFound: the member has no VolumeSnapshotClass that the snapshot's class
	// maps to. To do: create the class in the member, or map the snapshot's class to another one in
	// the registration (spec.storage.snapshotClasses).
	ReasonSnapshotClassNotFound = "SnapshotClassNotFound"
	// ReasonSnapshotClassMismatch: the class in the host or the member, and the claim's volume there,
	// belong to different drivers. To do: use a class with driver csi.xylem.io, and map it to a class
	// of the volume's driver in the registration (spec.storage.snapshotClasses).
	ReasonSnapshotClassMismatch = "SnapshotClassMismatch"
	// ReasonSnapshotsUnsupported: the member does not serve snapshots, or does not let Xylem read
	// them. To do: install the VolumeSnapshot CustomResourceDefinitions and the snapshot-controller
	// in the member, and grant the permissions in config/member. Xylem detects the change.
	ReasonSnapshotsUnsupported = "SnapshotsUnsupported"
	// ReasonSnapshotterSilent: a program in the member has not responded to the snapshot for some time
	// (--silent-after, and ten minutes more for a csi-snapshotter that has begun). The message names it:
	// the snapshot-controller, or the csi-snapshotter of the driver. It may not run, or may not be installed. To do: ask the member's admin to check that the
	// program runs. If it is only slow, do nothing.
	ReasonSnapshotterSilent = "SnapshotterSilent"
	// ReasonSnapshotSourceInvalid: the content's source is not the volume of the snapshot's claim,
	// or is not a volume of Xylem; or the content was created for a snapshot that already exists; or
	// somebody changed the content's reference to its snapshot. To do: use a snapshot class for the
	// driver of the claim's volume. If the reference was changed, follow the message.
	ReasonSnapshotSourceInvalid = "SnapshotSourceInvalid"
	// ReasonSnapshotSourceNotReady: the claim has no disk in a member yet. To do: follow
	// the message. Xylem takes the snapshot as soon as the disk exists.
	ReasonSnapshotSourceNotReady = "SnapshotSourceNotReady"
	// ReasonSnapshotLost: the member no longer has the snapshot, or the object from which it can be
	// restored. Xylem does not take a new snapshot. On a VolumeSnapshotContent in the host: its
	// snapshot has been missing since the member was restored, and Xylem has no record that it destroyed
	// the snapshot. To do: follow the message.
	ReasonSnapshotLost = "SnapshotLost"
	// ReasonSnapshotReplaced: the member has another snapshot with the same name. Xylem does not
	// use that snapshot, and keeps the data of both. To do: copy the data that you need from the
	// member, then delete the snapshot.
	ReasonSnapshotReplaced = "SnapshotReplaced"
	// ReasonSnapshotTerminating: somebody deleted the snapshot in the member, or the
	// VolumeSnapshotContent before it was taken. Xylem keeps the data in the member. To do: restore
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
	// ReasonForcedDeregistration: Xylem abandoned the member without contacting it. The message
	// lists the objects that are left in the member. Reported on the registration. To do: if the
	// member becomes reachable again, delete the objects that the message lists.
	ReasonForcedDeregistration = "ForcedDeregistration"
	// ReasonEndpointsInMember: a Service in the host selects Pods that run in a member, or clients in a
	// member reach no endpoint of the Service, or not all of them. Xylem does not connect networks.
	// Reported once on the Service. To do: if the networks are connected, set spec.node.podCIDRs or
	// spec.services.reachable of the registration, and check the route to the Pods.
	ReasonEndpointsInMember = "EndpointsInMember"
	// ReasonNotOfXylem: Xylem did not create the CSIDriver csi.xylem.io or
	// mock.csi.virtual-kubelet.io, and its settings differ from what Xylem needs. To do: delete the
	// CSIDriver, so that Xylem creates it again.
	ReasonNotOfXylem = "NotOfXylem"
)
