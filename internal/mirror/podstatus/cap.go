package podstatus

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/mirror/sanitize"
)

const (
	// StatusLimit in bytes of the whole status that is carried up of a Pod or claim:
	// kubelets keep the messages of a Pod's containers below 12 KiB.
	StatusLimit = 64 << 10
	// shortened is the message of a Pod whose status was longer.
	shortened = "Xylem shortened this status: the member reports more than 64 KiB. `kubectl describe pod` in the member shows all of it."
)

// shorterTexts are the limits in bytes of each text, one after the other, in a
// status that is too long. The last one still holds the name of any image and the
// ID of any container.
var shorterTexts = []int{1024, 256, 128}

// fit shortens a status that is too long, always in the same way: a status that is
// written again and again would be worse than a long one.
func fit(status *corev1.PodStatus) {
	if status.Size() <= StatusLimit {
		return
	}
	for _, limit := range shorterTexts {
		sanitize.AllWithin(status, limit)
		status.Message = shortened
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

// cappedStatus caps a container's resources at what the root's container asks for,
// and leaves out volume mounts that this one does not have.
func cappedStatus(status *corev1.ContainerStatus, root corev1.Container) {
	status.AllocatedResources = sanitize.Capped(status.AllocatedResources, root.Resources.Requests)
	if status.Resources != nil {
		status.Resources = &corev1.ResourceRequirements{
			Requests: sanitize.Capped(status.Resources.Requests, root.Resources.Requests),
			Limits:   sanitize.Capped(status.Resources.Limits, root.Resources.Limits),
		}
	}
	status.VolumeMounts = slices.DeleteFunc(status.VolumeMounts, func(mount corev1.VolumeMountStatus) bool {
		return !slices.ContainsFunc(root.VolumeMounts, func(has corev1.VolumeMount) bool {
			return has.Name == mount.Name && has.MountPath == mount.MountPath
		})
	})
}
