package podstatus

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/mirror/fields"
)

// PodStatusFieldTable decides on every field of a leaf Pod's status. Only fields that exist in every supported
// version of Kubernetes are mirrored, because the host rejects a server-side apply with an unknown
// field.
var PodStatusFieldTable = fields.Table{
	Title:      "Pod status (member to host)",
	PathPrefix: "status",
	StructType: reflect.TypeFor[corev1.PodStatus](),
	Fields: slices.Concat([]fields.Field{
		{Path: "observedGeneration", Decision: fields.Translate, Why: "the root's generation, once the leaf has all of its changes and the member's kubelet has observed them"},
		{Path: "phase", Decision: fields.Translate, Why: "the Pod runs only in the member; a phase that Kubernetes does not define becomes Unknown"},
		{Path: "conditions", Decision: fields.Translate, Why: "those that a kubelet sets, including those of a resize, and DisruptionTarget while True (for a Job's failure policy); Ready also waits for the root's readiness gates, and is False as soon as the member begins to evict or delete the leaf, so that the host's disruption budgets don't count it. The host's scheduler owns PodScheduled, and other controllers own the other types"},
		{Path: "message", Decision: fields.Keep, Why: "as the member's kubelet reports it"},
		{Path: "reason", Decision: fields.Keep, Why: "as the member's kubelet reports it"},
		{Path: "nominatedNodeName", Decision: fields.Drop, Why: "the host's scheduler owns it"},
		{Path: "hostIP", Decision: fields.Translate, Why: "the address of the member's node, unless it is special: a loopback, link-local or multicast address, an IPv6 address that embeds an IPv4 address, or the address of a metadata service"},
		{Path: "hostIPs", Decision: fields.Translate, Why: "like hostIP"},
		{Path: "podIP", Decision: fields.Translate, Why: "the first of podIPs"},
		{Path: "podIPs", Decision: fields.Translate, Why: "those within the registration's podCIDRs, except special addresses, as for hostIP; none if the registration has no podCIDRs"},
		{Path: "startTime", Decision: fields.Keep, Why: "when the member's kubelet accepted the Pod"},
		{Path: "qosClass", Decision: fields.Drop, Why: "computed by the host at creation, and immutable"},
		{Path: "resize", Decision: fields.Keep, Why: "as the member's kubelet reports it; kubelets since 1.33 report conditions instead"},
		{Path: "resourceClaimStatuses", Decision: fields.Drop, Why: "dynamic resources are rejected"},
		{Path: "extendedResourceClaimStatus", Decision: fields.Drop, Why: "refers to a ResourceClaim in the member, which does not exist in the host"},
		{Path: "allocatedResources", Decision: fields.Translate, Why: "only if the root has resources of its own, and with the limits for containers' allocatedResources. Hosts before 1.36 do not show it"},
		{Path: "resources", Decision: fields.Translate, Why: "like allocatedResources"},
		{Path: "nodeAllocatableResourceClaimStatuses", Decision: fields.Drop, Why: "alpha, and dynamic resources are rejected"},
		{Path: "volumeHealth", Decision: fields.Drop, Why: "alpha: API servers before 1.37 reject a status with this field"},
	},
		containerStatusFields("initContainerStatuses[]."),
		containerStatusFields("containerStatuses[]."),
		containerStatusFields("ephemeralContainerStatuses[]."),
	),
}

var podStatusDecisions = PodStatusFieldTable.CompileDecisions()

// containerStatusFields returns the decisions on the fields of a container's status. Translate
// omits the statuses of containers that the root lacks, because the member injected those
// containers.
func containerStatusFields(prefix string) []fields.Field {
	fields := []fields.Field{
		{Path: "name", Decision: fields.Keep, Why: "statuses of containers that the root lacks are omitted, since the member injected them"},
		{Path: "state", Decision: fields.Keep, Why: "as the member's kubelet reports it"},
		{Path: "lastState", Decision: fields.Keep, Why: "as the member's kubelet reports it"},
		{Path: "ready", Decision: fields.Keep, Why: "as the member's kubelet reports it"},
		{Path: "restartCount", Decision: fields.Keep, Why: "as the member's kubelet reports it"},
		{Path: "image", Decision: fields.Keep, Why: "as the member's kubelet reports it"},
		{Path: "imageID", Decision: fields.Keep, Why: "as the member's kubelet reports it"},
		{Path: "containerID", Decision: fields.Keep, Why: "as the member's kubelet reports it"},
		{Path: "started", Decision: fields.Keep, Why: "as the member's kubelet reports it"},
		{Path: "allocatedResources", Decision: fields.Translate, Why: "only resources that the root's container requests, and no more than the requested amounts, since the host's quotas count them; while a container shrinks, no more than the root's status shows"},
		{Path: "resources", Decision: fields.Translate, Why: "like allocatedResources; the limits do not exceed the root's"},
		{Path: "volumeMounts", Decision: fields.Translate, Why: "those that the root's container has"},
		{Path: "user", Decision: fields.Keep, Why: "as the member's kubelet reports it"},
		{Path: "allocatedResourcesStatus", Decision: fields.Drop, Why: "alpha, and describes devices of the member's node"},
		{Path: "stopSignal", Decision: fields.Keep, Why: "as the member's kubelet reports it"},
	}
	for i := range fields {
		fields[i].Path = prefix + fields[i].Path
	}
	return fields
}
