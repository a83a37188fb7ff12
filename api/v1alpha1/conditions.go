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
	// ConditionReady sums up the others; under deletion it says what is waited for.
	ConditionReady = "Ready"
)

// Reasons of the Connected condition.
const (
	// ReasonConnected: all is well.
	ReasonConnected = "Connected"
	// ReasonConnecting: the first attempt has not ended yet.
	ReasonConnecting = "Connecting"
	// ReasonSecretNotFound: the kubeconfig's Secret, or its key, is missing.
	ReasonSecretNotFound = "SecretNotFound"
	// ReasonKubeconfigInvalid: the kubeconfig does not parse, or lacks what is needed.
	ReasonKubeconfigInvalid = "KubeconfigInvalid"
	// ReasonKubeconfigRefused: the kubeconfig asks for something that could run
	// or read something here; the message names it.
	ReasonKubeconfigRefused = "KubeconfigRefused"
	// ReasonUnreachable: the member does not answer.
	ReasonUnreachable = "Unreachable"
	// ReasonUnauthorized: the member refuses the credentials.
	ReasonUnauthorized = "Unauthorized"
	// ReasonForbidden: the credentials lack a permission; the message names it.
	ReasonForbidden = "Forbidden"
	// ReasonIdentityChanged: another cluster answers than the one recorded.
	ReasonIdentityChanged = "IdentityChanged"
	// ReasonDuplicateCluster: an older registration has the same cluster.
	ReasonDuplicateCluster = "DuplicateCluster"
	// ReasonIsHost: the kubeconfig leads to the host itself.
	ReasonIsHost = "IsHost"
	// ReasonWaitingForFence: an earlier manager's fence has not run out yet.
	ReasonWaitingForFence = "WaitingForFence"
	// ReasonHostCloned: another manager of the same host identity holds the fence.
	ReasonHostCloned = "HostCloned"
	// ReasonHostRestored: connected, but the host's record is older than the
	// member's; destruction is suspended.
	ReasonHostRestored = "HostRestored"
	// ReasonMemberRestored: connected, but the member's fence is older than the
	// host's record; destruction is suspended.
	ReasonMemberRestored = "MemberRestored"
	// ReasonNodeNameTaken: a node of that name exists and is not ours.
	ReasonNodeNameTaken = "NodeNameTaken"
)

// Reasons of the VolumesAccounted and DeletionsProgressing conditions.
const (
	// ReasonAllAccounted: there is no orphaned volume.
	ReasonAllAccounted = "AllAccounted"
	// ReasonOrphanedVolumes: there are some; the message names the first ones.
	ReasonOrphanedVolumes = "OrphanedVolumes"
	// ReasonNotAccounted: the volumes could not be read; the message says since when.
	ReasonNotAccounted = "NotAccounted"
	// ReasonProgressing: nothing is stuck.
	ReasonProgressing = "Progressing"
	// ReasonStuckDeletion: the message names the oldest, and its cause.
	ReasonStuckDeletion = "StuckDeletion"
	// ReasonNotLookedAt: nobody has looked yet.
	ReasonNotLookedAt = "NotLookedAt"
)

// Reasons of the ClassesReflected condition.
const (
	// ReasonReflected: all of them are.
	ReasonReflected = "Reflected"
	// ReasonReflectionConflict: some have a name that the host has for something else:
	// a class that is not Xylem's, one that another member offers with another policy,
	// or one that a rule of the registration leads elsewhere.
	ReasonReflectionConflict = "ReflectionConflict"
	// ReasonTooManyClasses: there are more than spec.storage.reflect.max.
	ReasonTooManyClasses = "TooManyClasses"
	// ReasonSelectorInvalid: spec.storage.reflect.selector is none.
	ReasonSelectorInvalid = "SelectorInvalid"
)

// Reasons of the TokenFresh condition, and of events about it.
const (
	// ReasonTokenRenewed: it is, well before it expires.
	ReasonTokenRenewed = "TokenRenewed"
	// ReasonTokenNotRenewed: it is due, and was not; the message says why, and how long
	// the present one works.
	ReasonTokenNotRenewed = "TokenNotRenewed"
)

// Reasons of the NodeReady, Synced and Ready conditions.
const (
	ReasonNodeReady    = "NodeReady"
	ReasonNodeNotReady = "NodeNotReady"
	ReasonSynced       = "Synced"
	ReasonSyncing      = "Syncing"
	ReasonReady        = "Ready"
	ReasonNotConnected = "NotConnected"

	// ReasonDeregistering: the deletion goes on; the message says where it stands.
	ReasonDeregistering = "Deregistering"
	// ReasonConfirmationNeeded: Pods still run there; the message names the annotation.
	ReasonConfirmationNeeded = "ConfirmationNeeded"
	// ReasonDraining: deregistration Drain waits for the claims that the message lists.
	ReasonDraining = "Draining"
	// ReasonMemberUnreachable: the deletion needs the member, which does not answer.
	ReasonMemberUnreachable = "MemberUnreachable"
)
