package podstatus

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/mirror"
)

const (
	// StatusLimit is the maximum size, in bytes, of the mirrored status of a Pod or claim.
	// Kubelets keep the messages of a Pod's containers below 12 KiB.
	StatusLimit = 64 << 10
	// shortenedMessage is the status message of a Pod whose status exceeded the limit.
	shortenedMessage = "Xylem shortened this status: the member reports more than 64 KiB. `kubectl describe pod` in the member shows the full status."
)

// textLimits are successive limits, in bytes, of each text in a status that is too long. The
// last one still allows any image name and any container ID.
var textLimits = []int{1024, 256, 128}

// shortenStatus shortens a status that is too long. The result is deterministic, so that Xylem does not write
// the status repeatedly.
func shortenStatus(status *corev1.PodStatus) {
	if status.Size() <= StatusLimit {
		return
	}
	for _, limit := range textLimits {
		mirror.MemberValueWithin(status, limit)
		status.Message = shortenedMessage
		if status.Size() <= StatusLimit {
			return
		}
	}
	for _, list := range []*[]corev1.ContainerStatus{&status.EphemeralContainerStatuses, &status.InitContainerStatuses, &status.ContainerStatuses} {
		for i := range *list {
			(*list)[i].LastTerminationState = corev1.ContainerState{}
			(*list)[i].VolumeMounts = nil
			(*list)[i].User = nil
		}
	}
	for _, list := range []*[]corev1.ContainerStatus{&status.EphemeralContainerStatuses, &status.InitContainerStatuses, &status.ContainerStatuses} {
		for len(*list) > 0 && status.Size() > StatusLimit {
			*list = (*list)[:len(*list)-1]
		}
	}
}

// capContainerStatus limits a container's resources to what the tenant requested, and drops volume mounts that the
// root does not have. While the member shrinks a container, the host counts its earlier resources, as on its own
// nodes: those that the root's status shows, which were within the earlier requests and limits.
func capContainerStatus(status *corev1.ContainerStatus, root corev1.Container, shown corev1.ContainerStatus) {
	requests := largerAmounts(root.Resources.Requests, shown.AllocatedResources)
	if shown.Resources != nil {
		requests = largerAmounts(requests, shown.Resources.Requests)
	}
	status.AllocatedResources = mirror.CapToRequested(status.AllocatedResources, requests)
	if status.Resources != nil {
		limits := root.Resources.Limits
		if shown.Resources != nil {
			limits = largerAmounts(limits, shown.Resources.Limits)
		}
		status.Resources = &corev1.ResourceRequirements{
			Requests: mirror.CapToRequested(status.Resources.Requests, requests),
			Limits:   mirror.CapToRequested(status.Resources.Limits, limits),
		}
	}
	status.VolumeMounts = slices.DeleteFunc(status.VolumeMounts, func(mount corev1.VolumeMountStatus) bool {
		return !slices.ContainsFunc(root.VolumeMounts, func(has corev1.VolumeMount) bool {
			return has.Name == mount.Name && has.MountPath == mount.MountPath
		})
	})
}

// largerAmounts returns requested, with the larger amounts that the root's status shows of the same resources.
func largerAmounts(requested, shown corev1.ResourceList) corev1.ResourceList {
	larger := maps.Clone(requested)
	for name, amount := range shown {
		if asked, requests := requested[name]; requests && amount.Cmp(asked) > 0 {
			larger[name] = amount
		}
	}
	return larger
}

// containerStatusOf returns the status of a container, or an empty one.
func containerStatusOf(statuses []corev1.ContainerStatus, name string) corev1.ContainerStatus {
	for i := range statuses {
		if statuses[i].Name == name {
			return statuses[i]
		}
	}
	return corev1.ContainerStatus{}
}
