package podspec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/fields"
)

// computedFields lists dropped fields that need no report, because a scheduler or the API server set
// them, or another reported field implies them.
var computedFields = map[string]bool{
	"spec.nodeName": true, "spec.schedulingGates": true, "spec.priority": true, "spec.preemptionPolicy": true,
	"spec.overhead": true, "spec.serviceAccount": true,
}

// OmittedFields returns the fields of a root Pod that its leaf in a member lacks according to FIELDS.md and that
// users may rely on.
func OmittedFields(root *corev1.Pod, m mirror.Member) []string {
	var names []string
	if class := root.Spec.PriorityClassName; class != "" && m.PriorityClasses[class] == "" {
		names = append(names, fmt.Sprintf("spec.priorityClassName %q (its ClusterRegistration does not map the class in spec.pods.priorityClasses)", class))
	}
	for _, path := range fields.DroppedFields(podDecisions, &root.Spec, PodFieldTable.PathPrefix) {
		switch {
		case computedFields[path]:
		case path == "spec.serviceAccountName":
			if name := root.Spec.ServiceAccountName; name != "default" && m.APIServer == nil {
				names = append(names, fmt.Sprintf("%s %q and its token", path, name))
			}
		case path == "spec.schedulerName":
			if name := root.Spec.SchedulerName; name != corev1.DefaultSchedulerName {
				names = append(names, fmt.Sprintf("%s %q", path, name))
			}
		default:
			names = append(names, path)
		}
	}
	automount := root.Spec.AutomountServiceAccountToken
	if m.APIServer == nil && automount != nil && *automount && (root.Spec.ServiceAccountName == "" || root.Spec.ServiceAccountName == "default") {
		names = append(names, "the service account's token (spec.automountServiceAccountToken)")
	}
	return names
}
