package v1alpha1

// Condition types of a ClusterRegistration. All have positive polarity.
const (
	// ConditionConnected: the member responds, is the recorded cluster, and the manager
	// holds its fence.
	ConditionConnected = "Connected"
	// ConditionNodeReady: the virtual node exists and is Ready.
	ConditionNodeReady = "NodeReady"
	// ConditionSynced: the caches contain the member's objects, and its controllers are running.
	ConditionSynced = "Synced"
	// ConditionVolumesAccounted: every leaf volume of this host in the member has a root. Unknown
	// if Xylem cannot determine it.
	ConditionVolumesAccounted = "VolumesAccounted"
	// ConditionSnapshotsAccounted: the host has a content for every snapshot of this host in the
	// member. Unknown if Xylem cannot determine it. Only set while the host serves snapshots.
	ConditionSnapshotsAccounted = "SnapshotsAccounted"
	// ConditionDeletionsProgressing: no deletion takes longer than expected.
	ConditionDeletionsProgressing = "DeletionsProgressing"
	// ConditionClassesReflected: the selected classes of the member are published in the host. Only
	// set while the registration selects classes.
	ConditionClassesReflected = "ClassesReflected"
	// ConditionTokenFresh: the manager renews its token for the member before it expires.
	// Only set if the Secret requests renewal.
	ConditionTokenFresh = "TokenFresh"
	// ConditionPolicyEnforced: the member's admission policies limit the manager's account. Unknown
	// if Xylem cannot determine it. Ready does not depend on it.
	ConditionPolicyEnforced = "PolicyEnforced"
	// ConditionNamespacesAdmitted: all of the host's claims and Pods in the member are in namespaces
	// that the registration admits. Only set while spec.namespaces has rules, or lifts a default one.
	// Ready does not depend on it.
	ConditionNamespacesAdmitted = "NamespacesAdmitted"
	// ConditionReady summarizes the other conditions. During deletion, it shows what the deletion
	// is waiting for.
	ConditionReady = "Ready"
)

// Reasons of the Connected condition.
const (
	// ReasonConnected: the member is connected. To do: nothing.
	ReasonConnected = "Connected"
	// ReasonConnecting: Xylem is connecting to the member for the first time. To do: nothing.
	ReasonConnecting = "Connecting"
	// ReasonSecretNotFound: the Secret with the kubeconfig, or its key kubeconfig, does not exist.
	// To do: create the Secret that spec.kubeconfigSecretRef names, with key kubeconfig, in the
	// manager's namespace.
	ReasonSecretNotFound = "SecretNotFound"
	// ReasonKubeconfigInvalid: the kubeconfig cannot be parsed or is incomplete. The message names
	// what is missing. To do: write a complete kubeconfig.
	ReasonKubeconfigInvalid = "KubeconfigInvalid"
	// ReasonKubeconfigRefused: the kubeconfig contains an entry that the manager does not allow, such
	// as one that runs a program, reads a file or impersonates a user. Or the manager does not connect
	// to the server's address, such as that of a metadata service. The message names the entry or the
	// address. To do: use only the server, its CA, and a token or certificate, all inline, and the
	// address of the member's API server.
	ReasonKubeconfigRefused = "KubeconfigRefused"
	// ReasonUnreachable: the member is unreachable. To do: check the network and the member's API
	// server. No data in the member is lost.
	ReasonUnreachable = "Unreachable"
	// ReasonLeaseRejected: the member answers, but an admission webhook or policy in the member rejects
	// the Lease, or the namespace, with which the manager proves that it is the member's only manager.
	// The message quotes the member's response, and Xylem retries. No data in the member is lost. To
	// do: ask the member's admin to exempt namespace xylem-system from the webhook or policy.
	ReasonLeaseRejected = "LeaseRejected"
	// ReasonAnswersRefused: the member's responses, or all its objects together, exceed the memory
	// limit for one member, or the responses do not come from an API server. Xylem closes the
	// connection and retries every minute. Other members are not affected. To do: if the member
	// needs that much memory, raise the flag that the message names.
	ReasonAnswersRefused = "AnswersRefused"
	// ReasonUnauthorized: the member rejects the credentials. To do: write new credentials
	// into the Secret.
	ReasonUnauthorized = "Unauthorized"
	// ReasonForbidden: the credentials lack a permission; the message names it. To do: apply
	// config/member, or install the chart xylem-member, in the member.
	ReasonForbidden = "Forbidden"
	// ReasonIdentityChanged: the connected cluster is not the recorded one. Either the member was
	// wiped, or the kubeconfig points to another cluster. To do: see internal/RECOVERY.md.
	ReasonIdentityChanged = "IdentityChanged"
	// ReasonDuplicateCluster: another registration recorded the same cluster first. To do:
	// delete one of the two registrations. If you delete the first, the other takes over.
	ReasonDuplicateCluster = "DuplicateCluster"
	// ReasonIsHost: the kubeconfig points to the host itself. To do: use the kubeconfig of
	// another cluster.
	ReasonIsHost = "IsHost"
	// ReasonWaitingForFence: the fence of an earlier manager has not expired yet. To do: nothing.
	// The fence expires within --fence-duration.
	ReasonWaitingForFence = "WaitingForFence"
	// ReasonHostCloned: another manager with the same host identity holds the fence. To do:
	// stop the manager in the clone; see internal/RECOVERY.md.
	ReasonHostCloned = "HostCloned"
	// ReasonHostRestored: the member is connected, but the host's record is older than the
	// member's. Xylem has suspended destruction. To do: see internal/RECOVERY.md, and confirm as
	// the message describes.
	ReasonHostRestored = "HostRestored"
	// ReasonMemberRestored: the member is connected, but its fence is older than the host's record.
	// Xylem has suspended destruction. To do: see internal/RECOVERY.md, and confirm as the message
	// describes.
	ReasonMemberRestored = "MemberRestored"
	// ReasonNodeNameTaken: a node with the name of the virtual node exists, and Xylem did not
	// create it. To do: delete the existing node, or register the cluster with another
	// spec.node.name.
	ReasonNodeNameTaken = "NodeNameTaken"
)

// Reasons of the PolicyEnforced condition.
const (
	// ReasonPolicyInForce: the member rejected a request that its policies must reject. To do:
	// nothing.
	ReasonPolicyInForce = "PolicyInForce"
	// ReasonPolicyNotInForce: the member accepted a request that its policies must reject. The
	// policies are missing, or do not limit the user in the kubeconfig. An attacker with the
	// credentials can do everything that RBAC allows this user. To do: run `kubectl xylem register`
	// for the member again, or install the chart xylem-member in the member and put a token of the
	// chart's account into the Secret.
	ReasonPolicyNotInForce = "PolicyNotInForce"
	// ReasonPolicyNotProven: the dry run that tests the member's policies failed for a reason other
	// than a policy. The message shows the reason. To do: follow the message. The manager retries
	// for a minute, and again when it reconnects.
	ReasonPolicyNotProven = "PolicyNotProven"
)

// Reasons of the VolumesAccounted, SnapshotsAccounted and DeletionsProgressing conditions.
const (
	// ReasonAllAccounted: there are no orphaned volumes or snapshots. To do: nothing.
	ReasonAllAccounted = "AllAccounted"
	// ReasonOrphanedVolumes: there are orphaned volumes. The message names the first ones. To do:
	// to use a volume again, re-create its claim with spec.volumeName. To destroy a volume, set its
	// reclaim policy to Delete in the member, then delete its leaf claim.
	ReasonOrphanedVolumes = "OrphanedVolumes"
	// ReasonOrphanedSnapshots: there are orphaned snapshots. The message names the first ones. To
	// do: if nobody needs the data, delete the snapshots in the member, after setting their
	// deletion policy to Delete.
	ReasonOrphanedSnapshots = "OrphanedSnapshots"
	// ReasonNotAccounted: Xylem could not read the volumes or snapshots. The message shows since
	// when. To do: nothing. Xylem retries. If the problem persists, see the condition Connected.
	ReasonNotAccounted = "NotAccounted"
	// ReasonProgressing: no deletion is stuck. To do: nothing.
	ReasonProgressing = "Progressing"
	// ReasonStuckDeletion: a deletion takes longer than expected. The message names the oldest one
	// and its cause. Also reported on the object that is being deleted, and on a new claim or Pod with
	// the same name. To do: remove the cause, such as a Pod, a finalizer, an error of the
	// provisioner, or a member that is away.
	ReasonStuckDeletion = "StuckDeletion"
	// ReasonNotLookedAt: Xylem has not checked for stuck deletions yet. To do: nothing.
	ReasonNotLookedAt = "NotLookedAt"
)

// Reasons of the ClassesReflected condition.
const (
	// ReasonReflected: all selected classes are published. To do: nothing.
	ReasonReflected = "Reflected"
	// ReasonReflectionConflict: some class names are not available in the host. Xylem did not
	// create the existing class, another member offers the name with another policy, or a rule of
	// the registration maps the name to another class. Xylem publishes the other classes. To do:
	// rename the class that the message names, or change the registration's rule.
	ReasonReflectionConflict = "ReflectionConflict"
	// ReasonTooManyClasses: the selector matches more classes than
	// spec.storage.reflect.max. To do: raise spec.storage.reflect.max, or select fewer.
	ReasonTooManyClasses = "TooManyClasses"
	// ReasonSelectorInvalid: the selector in spec.storage.reflect is invalid. To do: correct
	// spec.storage.reflect.selector.
	ReasonSelectorInvalid = "SelectorInvalid"
)

// Reasons of the NamespacesAdmitted condition, and of events about it.
const (
	// ReasonNamespacesAdmitted: the registration admits every namespace that has claims or Pods in the
	// member. To do: nothing.
	ReasonNamespacesAdmitted = "NamespacesAdmitted"
	// ReasonNamespacesNotAdmitted: the registration no longer admits a namespace that has claims or
	// Pods in the member, because the rules or the namespace's labels changed. The message counts
	// these claims and Pods. Xylem leaves them in the member and creates no others. To do: delete
	// the claims and Pods that the message counts, or change spec.namespaces or the namespace's
	// labels.
	ReasonNamespacesNotAdmitted = "NamespacesNotAdmitted"
	// ReasonNoNamespaceAdmitted: the rules admit none of the host's namespaces. To do: change
	// spec.namespaces, or label a namespace as the rules require.
	ReasonNoNamespaceAdmitted = "NoNamespaceAdmitted"
)

// Reasons of the TokenFresh condition, and of events about it.
const (
	// ReasonTokenRenewed: the manager renewed the token in time. To do: nothing.
	ReasonTokenRenewed = "TokenRenewed"
	// ReasonTokenNotRenewed: the renewal of the token failed. The message shows why, and how long
	// the token is still valid. To do: grant the manager's account in the member the permissions of
	// config/member again. If the token has expired, register the member again.
	ReasonTokenNotRenewed = "TokenNotRenewed"
)

// Reasons of the NodeReady, Synced and Ready conditions.
const (
	// ReasonNodeReady: the virtual node is Ready. To do: nothing.
	ReasonNodeReady = "NodeReady"
	// ReasonNodeNotReady: the virtual node is not Ready, or does not exist yet. To do: see
	// the node's own Ready condition.
	ReasonNodeNotReady = "NodeNotReady"
	// ReasonSynced: the caches contain the member's objects. To do: nothing.
	ReasonSynced = "Synced"
	// ReasonServicesForbidden: the member's objects are cached, but the credentials lack the permission to
	// create Services, so Pods in the member don't resolve the names of the host's Services. Nothing else is
	// affected. To do: upgrade the chart xylem-member in the member, or apply config/member there, or set
	// spec.services.reflect to None.
	ReasonServicesForbidden = "ServicesForbidden"
	// ReasonSyncing: Xylem is filling the caches. To do: nothing.
	ReasonSyncing = "Syncing"
	// ReasonReady: the member is ready for Pods and claims. To do: nothing.
	ReasonReady = "Ready"
	// ReasonNotConnected: the member is not connected. To do: see the condition Connected.
	ReasonNotConnected = "NotConnected"

	// ReasonDeregistering: the deletion is in progress. The message shows its progress. To do:
	// nothing.
	ReasonDeregistering = "Deregistering"
	// ReasonConfirmationNeeded: Pods are still running in the member. To do: stop the Pods first,
	// or set the annotation that the message names.
	ReasonConfirmationNeeded = "ConfirmationNeeded"
	// ReasonDraining: deregistration Drain waits until the claims that the message lists are
	// deleted. To do: delete the claims that the message lists, or set spec.deregistration to
	// Retain.
	ReasonDraining = "Draining"
	// ReasonMemberUnreachable: Xylem cannot complete the deletion, because the member is
	// unreachable. To do: make the member reachable, or set the annotation
	// xylem.io/force-deregister.
	ReasonMemberUnreachable = "MemberUnreachable"
	// ReasonCSINodeNameTaken: a CSINode with the name of the virtual node exists, and Xylem did not
	// create it. From Kubernetes 1.37, Pods that use members' volumes cannot be scheduled to the
	// node. The Node's condition xylem.io/CSINode and Pods also report this reason. To do: delete
	// the existing CSINode, so that Xylem creates its own.
	ReasonCSINodeNameTaken = "CSINodeNameTaken"
	// ReasonCSINodeMissing: the host's API server does not let Xylem write the CSINode of the virtual
	// node; the message quotes its response. From Kubernetes 1.37, Pods that use members' volumes
	// cannot be scheduled to the node. The Node's condition xylem.io/CSINode and Pods also report this
	// reason. To do: let the manager's account create and patch CSINodes (config/rbac, or the chart),
	// and check the host's admission policies.
	ReasonCSINodeMissing = "CSINodeMissing"
)
