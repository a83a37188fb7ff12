package v1alpha1

// Condition types of a ClusterRegistration. All are of positive polarity.
const (
	// ConditionConnected: the member answers, is who it was, and its fence is ours.
	ConditionConnected = "Connected"
	// ConditionNodeReady: the virtual node exists and is Ready.
	ConditionNodeReady = "NodeReady"
	// ConditionSynced: the member's objects are read and its controllers run.
	ConditionSynced = "Synced"
	// ConditionVolumesAccounted: every leaf volume of this host in the member has a
	// root. Unknown while that cannot be found out.
	ConditionVolumesAccounted = "VolumesAccounted"
	// ConditionDeletionsProgressing: no deletion takes longer than it should.
	ConditionDeletionsProgressing = "DeletionsProgressing"
	// ConditionClassesReflected: the member's classes that are asked for are published
	// in the host. There only while some are asked for.
	ConditionClassesReflected = "ClassesReflected"
	// ConditionTokenFresh: the manager renews its token in the member before it
	// expires. There only while the Secret asks for that.
	ConditionTokenFresh = "TokenFresh"
	// ConditionPolicyEnforced: the member's admission policies limit the account by which
	// the manager is connected. Unknown where that cannot be found out. It does not count
	// for Ready.
	ConditionPolicyEnforced = "PolicyEnforced"
	// ConditionReady sums up the others; under deletion it says what is waited for.
	ConditionReady = "Ready"
)

// Reasons of the Connected condition.
const (
	// ReasonConnected: all is well. To do: nothing.
	ReasonConnected = "Connected"
	// ReasonConnecting: the first attempt has not ended yet. To do: nothing.
	ReasonConnecting = "Connecting"
	// ReasonSecretNotFound: the kubeconfig's Secret, or its key, is missing. To do: make
	// the Secret that spec.kubeconfigSecretRef names, with key kubeconfig, in the
	// manager's namespace.
	ReasonSecretNotFound = "SecretNotFound"
	// ReasonKubeconfigInvalid: the kubeconfig does not parse, or lacks what is needed. To
	// do: give a whole kubeconfig; the message says what is missing.
	ReasonKubeconfigInvalid = "KubeconfigInvalid"
	// ReasonKubeconfigRefused: the kubeconfig asks for something that could run or read
	// something here; the message names it. To do: give the server, its CA, and a token or
	// certificate, all as data.
	ReasonKubeconfigRefused = "KubeconfigRefused"
	// ReasonUnreachable: the member does not answer. To do: see to the network, and to the
	// member's API server; nothing of the member is lost meanwhile.
	ReasonUnreachable = "Unreachable"
	// ReasonAnswersRefused: the member's answers, or all its objects together, would take
	// more of the manager's memory than one member may, or are not an API server's. Xylem
	// closes the link and tries again every minute; other members are not affected. To do:
	// if the member is not at fault, raise the flag that the message names.
	ReasonAnswersRefused = "AnswersRefused"
	// ReasonUnauthorized: the member refuses the credentials. To do: put fresh credentials
	// into the Secret.
	ReasonUnauthorized = "Unauthorized"
	// ReasonForbidden: the credentials lack a permission; the message names it. To do:
	// apply the member's RBAC (config/member, or chart xylem-member) there.
	ReasonForbidden = "Forbidden"
	// ReasonIdentityChanged: another cluster answers than the one recorded. To do: see
	// internal/RECOVERY.md: the member was wiped, or the kubeconfig leads elsewhere.
	ReasonIdentityChanged = "IdentityChanged"
	// ReasonDuplicateCluster: another registration recorded the same cluster first. To
	// do: delete one of the two registrations; if it is the first, the other takes over.
	ReasonDuplicateCluster = "DuplicateCluster"
	// ReasonIsHost: the kubeconfig leads to the host itself. To do: give the kubeconfig of
	// another cluster.
	ReasonIsHost = "IsHost"
	// ReasonWaitingForFence: an earlier manager's fence has not run out yet. To do:
	// nothing, it lasts for --fence-duration at most.
	ReasonWaitingForFence = "WaitingForFence"
	// ReasonHostCloned: another manager of the same host identity holds the fence. To do:
	// see internal/RECOVERY.md: stop the manager in the clone.
	ReasonHostCloned = "HostCloned"
	// ReasonHostRestored: connected, but the host's record is older than the member's;
	// destruction is suspended. To do: see internal/RECOVERY.md, and confirm as the
	// message says.
	ReasonHostRestored = "HostRestored"
	// ReasonMemberRestored: connected, but the member's fence is older than the host's
	// record; destruction is suspended. To do: see internal/RECOVERY.md, and confirm as
	// the message says.
	ReasonMemberRestored = "MemberRestored"
	// ReasonNodeNameTaken: a node of that name exists and is not ours. To do: remove that
	// node, or register the cluster under another spec.node.name.
	ReasonNodeNameTaken = "NodeNameTaken"
)

// Reasons of the PolicyEnforced condition.
const (
	// ReasonPolicyInForce: the member rejected what its policies must reject. To do:
	// nothing.
	ReasonPolicyInForce = "PolicyInForce"
	// ReasonPolicyNotInForce: the member accepted what its policies must reject: they are
	// not there, or the kubeconfig is of a user whom they do not limit. A thief with the
	// credentials can do all that RBAC lets this user do. To do: run `kubectl xylem
	// register` for the member again, or install the chart xylem-member there and give the
	// Secret a token of its account.
	ReasonPolicyNotInForce = "PolicyNotInForce"
	// ReasonPolicyNotProven: the dry run failed for another reason, which the message
	// gives. To do: what the message says; the manager retries for a minute, and at its next
	// connection.
	ReasonPolicyNotProven = "PolicyNotProven"
)

// Reasons of the VolumesAccounted and DeletionsProgressing conditions.
const (
	// ReasonAllAccounted: there is no orphaned volume. To do: nothing.
	ReasonAllAccounted = "AllAccounted"
	// ReasonOrphanedVolumes: there are some; the message names the first ones. To do: make
	// the claim anew with spec.volumeName to use one again, or have it deleted there.
	ReasonOrphanedVolumes = "OrphanedVolumes"
	// ReasonNotAccounted: the volumes could not be read; the message says since when. To
	// do: nothing, it is tried again; if it lasts, see Connected.
	ReasonNotAccounted = "NotAccounted"
	// ReasonProgressing: nothing is stuck. To do: nothing.
	ReasonProgressing = "Progressing"
	// ReasonStuckDeletion: a deletion takes longer than it should; the message names the
	// oldest, and its cause. On the object that does not go, too. To do: what holds it is
	// named: a Pod, a finalizer, the provisioner's error, a member that is away.
	ReasonStuckDeletion = "StuckDeletion"
	// ReasonNotLookedAt: nobody has looked yet. To do: nothing.
	ReasonNotLookedAt = "NotLookedAt"
)

// Reasons of the ClassesReflected condition.
const (
	// ReasonReflected: all of them are. To do: nothing.
	ReasonReflected = "Reflected"
	// ReasonReflectionConflict: some have a name that the host has for something else: a
	// class that is not Xylem's, one that another member offers with another policy, or
	// one that a rule of the registration leads elsewhere. To do: rename the class, or
	// change the rule, that the message names; the others are published.
	ReasonReflectionConflict = "ReflectionConflict"
	// ReasonTooManyClasses: there are more than spec.storage.reflect.max. To do: raise
	// spec.storage.reflect.max, or select fewer.
	ReasonTooManyClasses = "TooManyClasses"
	// ReasonSelectorInvalid: spec.storage.reflect.selector is none. To do: correct
	// spec.storage.reflect.selector.
	ReasonSelectorInvalid = "SelectorInvalid"
)

// Reasons of the TokenFresh condition, and of events about it.
const (
	// ReasonTokenRenewed: it is, well before it expires. To do: nothing.
	ReasonTokenRenewed = "TokenRenewed"
	// ReasonTokenNotRenewed: it is due, and was not; the message says why, and how long
	// the present one works. To do: give the member's account the rights of config/member
	// again; once the token has expired, register the member again.
	ReasonTokenNotRenewed = "TokenNotRenewed"
)

// Reasons of the NodeReady, Synced and Ready conditions.
const (
	// ReasonNodeReady: the virtual node is Ready. To do: nothing.
	ReasonNodeReady = "NodeReady"
	// ReasonNodeNotReady: it is not, or not there yet. To do: see the node's own Ready
	// condition.
	ReasonNodeNotReady = "NodeNotReady"
	// ReasonSynced: the member's objects are read. To do: nothing.
	ReasonSynced = "Synced"
	// ReasonSyncing: they are being read. To do: nothing.
	ReasonSyncing = "Syncing"
	// ReasonReady: the member can be used. To do: nothing.
	ReasonReady = "Ready"
	// ReasonNotConnected: the member is not connected. To do: see the condition Connected.
	ReasonNotConnected = "NotConnected"

	// ReasonDeregistering: the deletion goes on; the message says where it stands. To do:
	// nothing.
	ReasonDeregistering = "Deregistering"
	// ReasonConfirmationNeeded: Pods still run there; the message names the annotation. To
	// do: set the annotation that the message names, or stop those Pods first.
	ReasonConfirmationNeeded = "ConfirmationNeeded"
	// ReasonDraining: deregistration Drain waits for the claims that the message lists. To
	// do: delete those claims, or set spec.deregistration to Retain.
	ReasonDraining = "Draining"
	// ReasonMemberUnreachable: the deletion needs the member, which does not answer. To
	// do: bring the member back, or set the annotation xylem.io/force-deregister.
	ReasonMemberUnreachable = "MemberUnreachable"
)
