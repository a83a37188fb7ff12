package podstatus

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/mirror/fields"
)

// Table decides on every field of a leaf Pod's status. Only fields
// that every supported version of Kubernetes knows are carried: a server-side
// apply that names a field which the host lacks is refused as a whole.
var Table = fields.Table{
	Title:  "Pod status (member to host)",
	Root:   "status",
	Holder: reflect.TypeFor[corev1.PodStatus](),
	Fields: slices.Concat([]fields.Field{
		{Path: "observedGeneration", Decision: fields.Translate, Why: "the root's generation, once the leaf has all of it and the member's kubelet has seen that"},
		{Path: "phase", Decision: fields.Translate, Why: "the Pod runs there and nowhere else; what is none of Kubernetes' phases is shown as Unknown"},
		{Path: "conditions", Decision: fields.Translate, Why: "those that a kubelet sets, and DisruptionTarget while True (a Job's failure policy asks for it); Ready also waits for the root's readiness gates. PodScheduled is the host scheduler's, other types belong to whoever sets them on the root"},
		{Path: "message", Decision: fields.Keep, Why: "the member's kubelet says it"},
		{Path: "reason", Decision: fields.Keep, Why: "the member's kubelet says it"},
		{Path: "nominatedNodeName", Decision: fields.Drop, Why: "the host scheduler's"},
		{Path: "hostIP", Decision: fields.Translate, Why: "the member's real node, unless the address is special: loopback, link-local, multicast, translated, a metadata service"},
		{Path: "hostIPs", Decision: fields.Translate, Why: "as hostIP"},
		{Path: "podIP", Decision: fields.Translate, Why: "the first of podIPs"},
		{Path: "podIPs", Decision: fields.Translate, Why: "those inside the registration's podCIDRs that are not special, as hostIP; none without podCIDRs"},
		{Path: "startTime", Decision: fields.Keep, Why: "when the member's kubelet took the Pod"},
		{Path: "qosClass", Decision: fields.Drop, Why: "computed by the host at creation, and immutable"},
		{Path: "resize", Decision: fields.Keep, Why: "the member's kubelet resizes"},
		{Path: "resourceClaimStatuses", Decision: fields.Drop, Why: "dynamic resources are refused"},
		{Path: "extendedResourceClaimStatus", Decision: fields.Drop, Why: "the member's way of giving devices; the host has no such claims"},
		{Path: "allocatedResources", Decision: fields.Drop, Why: "alpha: hosts without the feature do not know it"},
		{Path: "resources", Decision: fields.Drop, Why: "alpha: hosts without the feature do not know it"},
		{Path: "nodeAllocatableResourceClaimStatuses", Decision: fields.Drop, Why: "alpha, and dynamic resources are refused"},
		{Path: "volumeHealth", Decision: fields.Drop, Why: "alpha: hosts before 1.37 refuse a status that has it"},
	},
		containerStatusFields("initContainerStatuses[]."),
		containerStatusFields("containerStatuses[]."),
		[]fields.Field{{Path: "ephemeralContainerStatuses", Decision: fields.Drop, Why: "ephemeral containers are not pushed; those of the leaf are the member's own"}},
	),
}

var podStatusShape = Table.Compile()

// containerStatusFields are the fields of a container's status. Statuses of
// containers that the root does not have (the member injected them) are left out.
func containerStatusFields(prefix string) []fields.Field {
	fields := []fields.Field{
		{Path: "name", Decision: fields.Keep, Why: "statuses of containers that the root lacks are left out: the member injected those"},
		{Path: "state", Decision: fields.Keep, Why: "as the member's kubelet says"},
		{Path: "lastState", Decision: fields.Keep, Why: "as the member's kubelet says"},
		{Path: "ready", Decision: fields.Keep, Why: "as the member's kubelet says"},
		{Path: "restartCount", Decision: fields.Keep, Why: "as the member's kubelet says"},
		{Path: "image", Decision: fields.Keep, Why: "as the member's kubelet says"},
		{Path: "imageID", Decision: fields.Keep, Why: "as the member's kubelet says"},
		{Path: "containerID", Decision: fields.Keep, Why: "as the member's kubelet says"},
		{Path: "started", Decision: fields.Keep, Why: "as the member's kubelet says"},
		{Path: "allocatedResources", Decision: fields.Translate, Why: "of resources that the root's container requests, at most as much: the host's quotas count it"},
		{Path: "resources", Decision: fields.Translate, Why: "as allocatedResources; limits as the root's limits"},
		{Path: "volumeMounts", Decision: fields.Translate, Why: "those that the root's container has"},
		{Path: "user", Decision: fields.Keep, Why: "as the member's kubelet says"},
		{Path: "allocatedResourcesStatus", Decision: fields.Drop, Why: "alpha, and about devices of the member's node"},
		{Path: "stopSignal", Decision: fields.Keep, Why: "as the member's kubelet says"},
	}
	for i := range fields {
		fields[i].Path = prefix + fields[i].Path
	}
	return fields
}
