package mirror

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// podStatusTable decides on every field of a leaf Pod's status. Only fields
// that every supported version of Kubernetes knows are carried: a server-side
// apply that names a field which the host lacks is refused as a whole.
var podStatusTable = Table{
	Title:  "Pod status (member to host)",
	root:   "status",
	holder: reflect.TypeFor[corev1.PodStatus](),
	Fields: slices.Concat([]Field{
		{"observedGeneration", Translate, "the root's generation, once the leaf has all of it and the member's kubelet has seen that"},
		{"phase", Translate, "the Pod runs there and nowhere else; what is none of Kubernetes' phases is shown as Unknown"},
		{"conditions", Translate, "those that a kubelet sets, and DisruptionTarget while True (a Job's failure policy asks for it); Ready also waits for the root's readiness gates. PodScheduled is the host scheduler's, other types belong to whoever sets them on the root"},
		{"message", Keep, "the member's kubelet says it"},
		{"reason", Keep, "the member's kubelet says it"},
		{"nominatedNodeName", Drop, "the host scheduler's"},
		{"hostIP", Translate, "the member's real node, unless the address is special: loopback, link-local, multicast, translated, a metadata service"},
		{"hostIPs", Translate, "as hostIP"},
		{"podIP", Translate, "the first of podIPs"},
		{"podIPs", Translate, "those inside the registration's podCIDRs that are not special, as hostIP; none without podCIDRs"},
		{"startTime", Keep, "when the member's kubelet took the Pod"},
		{"qosClass", Drop, "computed by the host at creation, and immutable"},
		{"resize", Keep, "the member's kubelet resizes"},
		{"resourceClaimStatuses", Drop, "dynamic resources are refused"},
		{"extendedResourceClaimStatus", Drop, "the member's way of giving devices; the host has no such claims"},
		{"allocatedResources", Drop, "alpha: hosts without the feature do not know it"},
		{"resources", Drop, "alpha: hosts without the feature do not know it"},
		{"nodeAllocatableResourceClaimStatuses", Drop, "alpha, and dynamic resources are refused"},
		{"volumeHealth", Drop, "alpha: hosts before 1.37 refuse a status that has it"},
	},
		containerStatusFields("initContainerStatuses[]."),
		containerStatusFields("containerStatuses[]."),
		[]Field{{"ephemeralContainerStatuses", Drop, "ephemeral containers are not pushed; those of the leaf are the member's own"}},
	),
}

var podStatusShape = podStatusTable.compile()

// containerStatusFields are the fields of a container's status. Statuses of
// containers that the root does not have (the member injected them) are left out.
func containerStatusFields(prefix string) []Field {
	fields := []Field{
		{"name", Keep, "statuses of containers that the root lacks are left out: the member injected those"},
		{"state", Keep, "as the member's kubelet says"},
		{"lastState", Keep, "as the member's kubelet says"},
		{"ready", Keep, "as the member's kubelet says"},
		{"restartCount", Keep, "as the member's kubelet says"},
		{"image", Keep, "as the member's kubelet says"},
		{"imageID", Keep, "as the member's kubelet says"},
		{"containerID", Keep, "as the member's kubelet says"},
		{"started", Keep, "as the member's kubelet says"},
		{"allocatedResources", Translate, "of resources that the root's container requests, at most as much: the host's quotas count it"},
		{"resources", Translate, "as allocatedResources; limits as the root's limits"},
		{"volumeMounts", Translate, "those that the root's container has"},
		{"user", Keep, "as the member's kubelet says"},
		{"allocatedResourcesStatus", Drop, "alpha, and about devices of the member's node"},
		{"stopSignal", Keep, "as the member's kubelet says"},
	}
	for i := range fields {
		fields[i].Path = prefix + fields[i].Path
	}
	return fields
}
