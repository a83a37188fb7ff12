package podstatus

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

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

// reportedResources are the resources of a container, or of a Pod, in a status.
type reportedResources struct {
	Allocated corev1.ResourceList
	Actual    *corev1.ResourceRequirements
}

// capContainerStatus limits a container's resources to what the tenant requested, and drops volume mounts that the
// root does not have.
func capContainerStatus(status *corev1.ContainerStatus, root corev1.Container, shown corev1.ContainerStatus) {
	capped := reportedResources{status.AllocatedResources, status.Resources}.capTo(root.Resources, reportedResources{shown.AllocatedResources, shown.Resources})
	status.AllocatedResources, status.Resources = capped.Allocated, capped.Actual
	status.VolumeMounts = slices.DeleteFunc(status.VolumeMounts, func(mount corev1.VolumeMountStatus) bool {
		return !slices.ContainsFunc(root.VolumeMounts, func(has corev1.VolumeMount) bool {
			return has.Name == mount.Name && has.MountPath == mount.MountPath
		})
	})
}

// capTo limits resources that a member reports to what the root requests. While the member shrinks a container or
// Pod, the host counts the earlier resources, as on its own nodes: those that the root's status shows, which were
// within the earlier requests and limits.
func (r reportedResources) capTo(asked corev1.ResourceRequirements, shown reportedResources) reportedResources {
	requests, limits := largerAmounts(asked.Requests, shown.Allocated), asked.Limits
	if shown.Actual != nil {
		requests, limits = largerAmounts(requests, shown.Actual.Requests), largerAmounts(limits, shown.Actual.Limits)
	}
	r.Allocated = mirror.CapToRequested(r.Allocated, requests)
	if r.Actual != nil {
		r.Actual = &corev1.ResourceRequirements{Requests: mirror.CapToRequested(r.Actual.Requests, requests), Limits: mirror.CapToRequested(r.Actual.Limits, limits)}
	}
	return r
}

// mirroredPodResources returns the resources of the Pod itself, if the root has any and the host can show them.
func mirroredPodResources(root, leaf *corev1.Pod, m mirror.Member) reportedResources {
	if !m.HostShowsPodResources || root.Spec.Resources == nil {
		return reportedResources{}
	}
	// A kubelet also counts what only the containers request, such as extended resources.
	asked := corev1.ResourceRequirements{
		Requests: resourcehelper.PodRequests(root, resourcehelper.PodResourcesOptions{}), Limits: resourcehelper.PodLimits(root, resourcehelper.PodResourcesOptions{}),
	}
	return reportedResources{leaf.Status.AllocatedResources, leaf.Status.Resources}.
		capTo(asked, reportedResources{root.Status.AllocatedResources, root.Status.Resources})
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
