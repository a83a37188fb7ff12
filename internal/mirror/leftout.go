package mirror

import (
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
)

// computed are the dropped fields whose loss nobody notices: a scheduler or the API server
// filled them in, or another field that is reported says the same.
var computed = map[string]bool{
	"spec.nodeName": true, "spec.schedulingGates": true, "spec.priority": true, "spec.preemptionPolicy": true,
	"spec.overhead": true, "spec.serviceAccount": true, "spec.ephemeralContainers": true,
}

// LeftOut names the fields of a root Pod that its leaf does not have, by the decisions of
// FIELDS.md, of those that somebody may rely on.
func LeftOut(root *corev1.Pod) []string {
	var names []string
	for _, path := range podShape.dropped(reflect.ValueOf(root.Spec), podTable.root) {
		switch {
		case computed[path]:
		case path == "spec.serviceAccountName":
			if name := root.Spec.ServiceAccountName; name != "default" {
				names = append(names, fmt.Sprintf("%s %q and its token", path, name))
			}
		case path == "spec.schedulerName":
			if name := root.Spec.SchedulerName; name != corev1.DefaultSchedulerName {
				names = append(names, fmt.Sprintf("%s %q", path, name))
			}
		case path == "spec.priorityClassName":
			names = append(names, fmt.Sprintf("%s %q", path, root.Spec.PriorityClassName))
		default:
			names = append(names, path)
		}
	}
	automount := root.Spec.AutomountServiceAccountToken
	if automount != nil && *automount && (root.Spec.ServiceAccountName == "" || root.Spec.ServiceAccountName == "default") {
		names = append(names, "the service account's token (spec.automountServiceAccountToken)")
	}
	return names
}

// dropped are the paths of fields that are set in v, a struct, and that the shape drops.
func (s shape) dropped(v reflect.Value, at string) []string {
	var paths []string
	for _, step := range s {
		f, path := v.FieldByIndex(step.index), at+"."+step.name
		switch {
		case step.decision == Drop:
			if !unset(f) {
				paths = append(paths, path)
			}
		case step.decision == Refuse:
		case f.Kind() == reflect.Slice:
			for i := range f.Len() {
				paths = append(paths, step.below.dropped(f.Index(i), path+label(f.Index(i), i))...)
			}
		case f.Kind() == reflect.Pointer:
			if !f.IsNil() {
				paths = append(paths, step.below.dropped(f.Elem(), path)...)
			}
		default:
			paths = append(paths, step.below.dropped(f, path)...)
		}
	}
	return paths
}
