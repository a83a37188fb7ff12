package mirror

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// statusLimit in bytes of the whole status that is carried up of a Pod or claim:
	// kubelets keep the messages of a Pod's containers below 12 KiB.
	statusLimit = 64 << 10
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
	if status.Size() <= statusLimit {
		return
	}
	for _, limit := range shorterTexts {
		boundTexts(status, limit)
		status.Message = shortened
		if status.Size() <= statusLimit {
			return
		}
	}
	for _, list := range []*[]corev1.ContainerStatus{&status.InitContainerStatuses, &status.ContainerStatuses} {
		for i := range *list {
			(*list)[i].LastTerminationState = corev1.ContainerState{}
			(*list)[i].VolumeMounts = nil
			(*list)[i].User = nil
		}
	}
	for _, list := range []*[]corev1.ContainerStatus{&status.InitContainerStatuses, &status.ContainerStatuses} {
		for len(*list) > 0 && status.Size() > statusLimit {
			*list = (*list)[:len(*list)-1]
		}
	}
}

// capped is what a member reports of each resource, at most what the root asked
// for: the host's quotas count the larger of the two.
func capped(reported, asked corev1.ResourceList) corev1.ResourceList {
	if reported == nil {
		return nil
	}
	reported = maps.Clone(reported)
	maps.DeleteFunc(reported, func(name corev1.ResourceName, _ resource.Quantity) bool {
		_, known := asked[name]
		return !known
	})
	for name, quantity := range reported {
		if most := asked[name]; quantity.Cmp(most) > 0 {
			reported[name] = most.DeepCopy()
		}
	}
	return reported
}

// cappedStatus caps a container's resources at what the root's container asks for,
// and leaves out volume mounts that this one does not have.
func cappedStatus(status *corev1.ContainerStatus, root corev1.Container) {
	status.AllocatedResources = capped(status.AllocatedResources, root.Resources.Requests)
	if status.Resources != nil {
		status.Resources = &corev1.ResourceRequirements{
			Requests: capped(status.Resources.Requests, root.Resources.Requests),
			Limits:   capped(status.Resources.Limits, root.Resources.Limits),
		}
	}
	status.VolumeMounts = slices.DeleteFunc(status.VolumeMounts, func(mount corev1.VolumeMountStatus) bool {
		return !slices.ContainsFunc(root.VolumeMounts, func(has corev1.VolumeMount) bool {
			return has.Name == mount.Name && has.MountPath == mount.MountPath
		})
	})
}

// storageOnly leaves out of a claim's status what is of other resources: claims
// have none.
func storageOnly(status *corev1.PersistentVolumeClaimStatus) {
	for _, list := range []corev1.ResourceList{status.Capacity, status.AllocatedResources} {
		maps.DeleteFunc(list, func(name corev1.ResourceName, _ resource.Quantity) bool { return name != corev1.ResourceStorage })
	}
	maps.DeleteFunc(status.AllocatedResourceStatuses, func(name corev1.ResourceName, _ corev1.ClaimResourceStatus) bool {
		return name != corev1.ResourceStorage
	})
}
