package podspec

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	// tokenVolumePrefix starts the names of the volumes that ServiceAccount
	// admission puts into Pods (plugin/pkg/admission/serviceaccount).
	tokenVolumePrefix = "kube-api-access-"

	// RootCAConfigMap is published into every namespace of every cluster by its
	// own controller-manager: the member has its own, and it is not Xylem's.
	RootCAConfigMap = "kube-root-ca.crt"
)

// IsTokenVolume recognizes the volume that ServiceAccount admission injects, by
// its name and the three sources that admission gives it (OpenShift's adds
// another ConfigMap). What a user made himself looks different somewhere, and
// is refused.
func IsTokenVolume(v corev1.Volume) bool {
	if !strings.HasPrefix(v.Name, tokenVolumePrefix) || v.Projected == nil {
		return false
	}
	var token, ca, namespace bool
	for _, s := range v.Projected.Sources {
		switch {
		case s.ServiceAccountToken != nil:
			if token || s.ServiceAccountToken.Audience != "" || s.ServiceAccountToken.Path != corev1.ServiceAccountTokenKey {
				return false
			}
			token = true
		case s.ConfigMap != nil:
			ca = ca || s.ConfigMap.Name == RootCAConfigMap
		case s.DownwardAPI != nil:
			namespace = len(s.DownwardAPI.Items) == 1 && s.DownwardAPI.Items[0].Path == corev1.ServiceAccountNamespaceKey
		default:
			return false
		}
	}
	return token && ca && namespace
}

// dropTokenVolume takes the injected token volume out, mounts included.
func dropTokenVolume(spec *corev1.PodSpec) {
	dropped := map[string]bool{}
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool {
		if IsTokenVolume(v) {
			dropped[v.Name] = true
		}
		return dropped[v.Name]
	})
	if len(dropped) == 0 {
		return
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			containers[i].VolumeMounts = slices.DeleteFunc(containers[i].VolumeMounts, func(m corev1.VolumeMount) bool {
				return dropped[m.Name]
			})
		}
	}
	for i := range spec.EphemeralContainers {
		c := &spec.EphemeralContainers[i]
		c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return dropped[m.Name] })
	}
}

// claimEphemeralVolumes makes generic ephemeral volumes plain claims: the host
// makes the claim, owned by the root Pod, and it is pushed like any other.
func claimEphemeralVolumes(pod string, spec *corev1.PodSpec) {
	for i := range spec.Volumes {
		if v := &spec.Volumes[i]; v.Ephemeral != nil {
			v.VolumeSource = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
				ClaimName: ephemeralClaimName(pod, v.Name),
			}}
		}
	}
}

// ephemeralClaimName is the name that the ephemeral volume controller gives
// (k8s.io/component-helpers/storage/ephemeral).
func ephemeralClaimName(pod, volume string) string { return pod + "-" + volume }

// ClaimNames are the names of the claims that the Pod's volumes use, those of
// generic ephemeral volumes included, each once, in the order of the volumes.
func ClaimNames(pod *corev1.Pod) []string {
	var names []string
	for _, v := range pod.Spec.Volumes {
		name := ""
		switch {
		case v.PersistentVolumeClaim != nil:
			name = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			name = ephemeralClaimName(pod.Name, v.Name)
		}
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// IsEphemeralClaim reports whether a claim name is that of a generic ephemeral
// volume of the Pod: Kubernetes uses the claim only if it is the Pod's own.
func IsEphemeralClaim(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Ephemeral != nil && ephemeralClaimName(pod.Name, v.Name) == name
	})
}
