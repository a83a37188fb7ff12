package podspec

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	// tokenVolumePrefix is the prefix of the names of volumes that ServiceAccount admission adds
	// to Pods (plugin/pkg/admission/serviceaccount).
	tokenVolumePrefix = "kube-api-access-"

	// RootCAConfigMap exists in every namespace of every cluster, because kube-controller-manager
	// creates it. A leaf uses the member's.
	RootCAConfigMap = "kube-root-ca.crt"
)

// IsTokenVolume recognizes the volume that ServiceAccount admission adds, by its name and its three
// sources (OpenShift adds another ConfigMap). User-defined token volumes differ in some way, and
// are refused.
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

// dropTokenVolume removes the injected token volume and its mounts.
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

// claimEphemeralVolumes replaces generic ephemeral volumes with plain claims. The host creates the
// claim, owned by the root Pod, and Xylem pushes it like any other.
func claimEphemeralVolumes(pod string, spec *corev1.PodSpec) {
	for i := range spec.Volumes {
		if v := &spec.Volumes[i]; v.Ephemeral != nil {
			v.VolumeSource = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
				ClaimName: ephemeralClaimName(pod, v.Name),
			}}
		}
	}
}

// ephemeralClaimName returns the name that the ephemeral volume controller uses
// (k8s.io/component-helpers/storage/ephemeral).
func ephemeralClaimName(pod, volume string) string { return pod + "-" + volume }

// ClaimNamesOfPod returns the names of the claims that the Pod's volumes use, including those of
// generic ephemeral volumes. Each name occurs once, in the order of the volumes.
func ClaimNamesOfPod(pod *corev1.Pod) []string {
	var names []string
	known := map[string]bool{"": true} // a search in names would be quadratic, and tenants choose the number of volumes
	for i := range pod.Spec.Volumes {
		v, name := &pod.Spec.Volumes[i], ""
		switch {
		case v.PersistentVolumeClaim != nil:
			name = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			name = ephemeralClaimName(pod.Name, v.Name)
		}
		if !known[name] {
			known[name] = true
			names = append(names, name)
		}
	}
	return names
}

// IsEphemeralClaim reports whether one of the Pod's generic ephemeral volumes has a claim with the
// given name. Kubernetes uses the claim only if the Pod owns it.
func IsEphemeralClaim(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Ephemeral != nil && ephemeralClaimName(pod.Name, v.Name) == name
	})
}
