package wording

import (
	"slices"
	"strings"
)

// remedy is what to do if a scheduler reports an obstacle. member is what to do in a member if it differs
// from the host, where each member is one node. rule is the Pod's rule that excludes nodes, if the
// scheduler's message misleads about virtual nodes, because they are not machines.
type remedy struct{ host, member, rule string }

// preferredOr is what to do about a Pod that requires what its cluster's nodes cannot satisfy.
const preferredOr = "Ask the member's admin to add nodes, or change the requirement to preferredDuringSchedulingIgnoredDuringExecution."

var remedies = map[Obstacle]remedy{
	EphemeralClaimAwaited: {host: "Wait until Kubernetes creates the claim of the Pod's ephemeral volume. If it does not, see the Pod's events: a quota or a policy may reject the claim."},
	EphemeralClaimForeign: {host: "Delete or rename the claim that has the name of the Pod's ephemeral volume, or rename the Pod or the volume: the claim belongs to another object."},
	ClaimNotFound:         {host: "Create the claim, or correct its name in the Pod."},
	ClaimWithoutVolume:    {host: "Restore the PersistentVolume, or delete the claim and create it again."},
	ClaimDeleted:          {host: "Wait until the claim is deleted, and create it again, or use another claim."},
	ClaimUnbound:          {host: "Run `kubectl xylem why pvc NAME` for the Pod's claims that are not bound."},
	ClaimInUse:            {host: "Delete the other Pod that uses the claim, or use a claim with access mode ReadWriteOnce or ReadWriteMany: only one Pod can use a ReadWriteOncePod claim."},
	ClaimWithoutClass:     {host: "Set the claim's spec.storageClassName to an existing class with a volumeBindingMode."},
	AffinityConflict:      {host: "Correct the Pod's node affinity: no node can match all of its terms."},
	GroupIncomplete:       {host: "Create the missing Pods of the Pod's group, or reduce the group's minCount."},
	PreemptionAwaited:     {host: "Wait until the Pods with a lower priority have ended."},
	DeviceUnavailable: {
		host:   "Remove spec.resourceClaims from the Pod, or run it on a node of the host: virtual nodes have no devices.",
		member: "Ask the member's admin to add devices of this class, or change the Pod's resource claims.",
		rule:   "the Pod's resource claims",
	},
	VolumeElsewhere: {
		host:   "Let the Pod run in the member that has its volume: see its nodeSelector, affinity and the other reasons in the message. To use the volume's data elsewhere, move the claim with `kubectl xylem move`. Claims in different members cannot serve one Pod.",
		member: "Ask the member's admin for capacity on the nodes that can reach the volume: see its node affinity.",
	},
	VolumeInOtherZone: {host: "Let the Pod run in the zone of its volume, or move the claim with `kubectl xylem move`.", member: "Let the Pod run in the zone of its volume."},
	PodAntiAffinity: {
		host:   "Register more members, or run fewer replicas: for the host's scheduler, each member is one node, so with topologyKey kubernetes.io/hostname at most one replica fits each member. Or use preferredDuringSchedulingIgnoredDuringExecution.",
		member: preferredOr,
		rule:   "the Pod's anti-affinity",
	},
	OthersAntiAffinity: {
		host:   "Change the anti-affinity of the other Pods, which excludes this Pod, or let the Pod run in a member without them: for the host's scheduler, each member is one node.",
		member: "Change the anti-affinity of the other Pods in the member, which excludes this Pod, or ask the member's admin to add nodes.",
		rule:   "the anti-affinity of other Pods",
	},
	PodAffinity: {
		host:   "Let the Pod run in the member of the Pods that its affinity requires, or use topologyKey xylem.io/cluster. Each member is one node for the host's scheduler.",
		member: preferredOr,
		rule:   "the Pod's affinity",
	},
	SpreadLabelMissing: {
		host:   "Set the label that is the constraint's topologyKey on the virtual nodes, with spec.node.labels of the registrations, or use topologyKey xylem.io/cluster.",
		member: "Ask the member's admin to label the nodes with the constraint's topologyKey, or use whenUnsatisfiable: ScheduleAnyway.",
		rule:   "the Pod's topology spread constraints",
	},
	TopologySpread: {
		host:   "Use topologyKey xylem.io/cluster, nodeTaintsPolicy: Honor or a nodeSelector for virtual nodes, because otherwise the host's own nodes count as empty domains. Or use whenUnsatisfiable: ScheduleAnyway. Each member is one node for the host's scheduler.",
		member: "Use whenUnsatisfiable: ScheduleAnyway, or ask the member's admin to add nodes.",
		rule:   "the Pod's topology spread constraints",
	},
	PortTaken: {
		host:   "Remove hostPort from the Pod, or use another one: for the host's scheduler, each member is one node, so only one Pod of each member can have this port.",
		member: "Remove hostPort from the Pod, or use another one.",
		rule:   "the Pod's hostPort",
	},
	DiskInUse:      {host: "Delete the other Pod that uses the disk, or mount the disk read-only in both."},
	TooManyVolumes: {host: "Delete Pods that have volumes, or let the Pod run in another member.", member: "Ask the member's admin to add nodes: the nodes cannot attach more volumes."},
	TooManyPods: {
		host:   "Delete Pods, let the Pod run in another member, or ask the member's admin to add nodes.",
		member: "Delete Pods, or ask the member's admin to add nodes.",
	},
	Insufficient: {
		host:   "Add nodes that meet the Pod's requirements (in a member, if the Pod uses a volume of a member), or reduce the Pod's requests.",
		member: "Ask the member's admin to add nodes, or reduce the Pod's requests.",
	},
	StorageInsufficient:  {host: "Request less storage, use another class, or ask a member's admin to add storage.", member: "Request less storage, or ask the member's admin to add storage."},
	NodeFeatureMissing:   {host: "Remove the fields from the Pod that need a newer kubelet, or upgrade the nodes."},
	NodeNameDiffers:      {host: "Remove spec.nodeName from the Pod."},
	ProfileNodeAffinity:  {host: "Use a scheduler profile whose addedAffinity matches the nodes, or ask the cluster's admin to change it."},
	NodeCordoned:         {host: "Uncordon the node, or wait until it is Ready. `kubectl get nodes` shows the state of virtual nodes.", member: "Ask the member's admin to uncordon the nodes."},
	NodeSelectorMismatch: {host: "Change the Pod's nodeSelector or node affinity, or set the labels on the virtual nodes, with spec.node.labels of the registrations.", member: "Ask the member's admin to label the nodes as the Pod requires, or change the Pod's nodeSelector or node affinity."},
	NoVolumeAvailable:    {host: "Create a PersistentVolume that matches the claim, or use a class with a provisioner."},
	TaintNotTolerated:    {host: "Add tolerations for the taints of the nodes to the Pod, or wait until the nodes with taints under node.kubernetes.io/ are Ready. `kubectl get nodes -o custom-columns=NAME:.metadata.name,TAINTS:.spec.taints` lists them."},
	DriverNotInstalled:   {host: "Register a member, or wait until its node has the driver: the host's own nodes cannot use volumes of members.", member: "Ask the member's admin to install the driver on the nodes."},
}

// RemediesFor returns what to do about the obstacles in a scheduler's message, or "".
func RemediesFor(message string, inMember bool) string {
	var found []string
	for _, o := range FindObstacles(message) {
		r := remedies[o]
		if inMember && r.member != "" {
			r.host = r.member
		}
		found = append(found, r.host)
	}
	return strings.Join(found, " ")
}

// ExcludingRules returns the rules of Pods because of which the host's scheduler excludes nodes, if its
// message misleads about virtual nodes.
func ExcludingRules(message string) (found []string) {
	for _, o := range FindObstacles(message) {
		if rule := remedies[o].rule; rule != "" && !slices.Contains(found, rule) {
			found = append(found, rule)
		}
	}
	return found
}
