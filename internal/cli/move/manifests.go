package move

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// manager is the value of the label app.kubernetes.io/managed-by.
const manager = "kubectl-xylem"

// DefaultImage has a shell, GNU tar with extended attributes, and sha256sum.
const DefaultImage = "docker.io/library/debian:13.2-slim"

const (
	container  = "mover"
	volumeName = "volume"
	// mountPath and devicePath are the paths of a volume in the container. The scripts read the path
	// from the environment variable volumeVariable.
	mountPath      = "/volume"
	devicePath     = "/dev/volume"
	volumeVariable = "VOLUME"
)

// idle makes the container wait until it is deleted.
const idle = `trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done`

// Roles of the two Pods, which are part of their names.
const (
	reads  = "from"
	writes = "to"
)

// short truncates a claim's name to leave space for suffixes.
func short(claim string) string {
	return strings.TrimRight(claim[:min(len(claim), longestName)], "-.")
}

func copyName(claim, id string) string { return short(claim) + "-move-" + id }

// podName returns the name of a Pod of a move. Each run creates new Pods, so that an earlier run's
// stream can no longer write to the copy.
func podName(r *record, role string) string {
	return short(r.Claim.Name) + "-move-" + r.ID + "-" + role + "-" + r.Run
}

// ofKubernetes are prefixes of annotations that Kubernetes' controllers write to claims.
var ofKubernetes = []string{"pv.kubernetes.io/", "volume.kubernetes.io/", "volume.beta.kubernetes.io/storage-provisioner"}

// kept returns the labels or annotations that a user wrote.
func kept(all map[string]string) map[string]string {
	mine := maps.Clone(all)
	maps.DeleteFunc(mine, func(key, _ string) bool {
		return v1alpha1.Reserved(key) || strings.HasPrefix(key, v1alpha1.MovePrefix) ||
			slices.ContainsFunc(ofKubernetes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	})
	return mine
}

// manifest returns a claim as its user would create it again, without a volume. It has no data
// source, because its data comes from the move.
func manifest(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	spec := claim.Spec.DeepCopy()
	spec.VolumeName, spec.DataSource, spec.DataSourceRef = "", nil, nil
	return &corev1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: claim.Namespace, Name: claim.Name, Labels: kept(claim.Labels), Annotations: kept(claim.Annotations),
			OwnerReferences: slices.Clone(claim.OwnerReferences),
		},
		Spec: *spec,
	}
}

// boundTo returns the claim of a move, for an existing volume.
func boundTo(r *record, volume string) *corev1.PersistentVolumeClaim {
	claim := r.Claim.DeepCopy()
	claim.Spec.VolumeName = volume
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, v1alpha1.LabelMove, r.ID)
	return claim
}

// isBoundTo reports whether this move created the claim for the volume.
func isBoundTo(claim *corev1.PersistentVolumeClaim, r *record, volume string) bool {
	return claim.Annotations[v1alpha1.LabelMove] == r.ID && claim.Spec.VolumeName == volume
}

// copyClaim returns the second claim. It is at least as large as the old volume, even if the user
// requested less.
func copyClaim(r *record, old *corev1.PersistentVolume) *corev1.PersistentVolumeClaim {
	spec := r.Claim.Spec.DeepCopy()
	spec.Selector = nil
	size := old.Spec.Capacity[corev1.ResourceStorage]
	if requested := spec.Resources.Requests[corev1.ResourceStorage]; requested.Cmp(size) > 0 {
		size = requested
	}
	spec.Resources = corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size}}
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.Claim.Namespace, Name: r.Copy,
			Labels:      map[string]string{v1alpha1.LabelManagedBy: manager, v1alpha1.LabelMove: r.ID},
			Annotations: map[string]string{v1alpha1.AnnotationMoveClaim: r.Claim.Namespace + "/" + r.Claim.Name},
		},
		Spec: *spec,
	}
}

// mover returns a Pod of a move. It runs as root to read and write files of all owners, but has
// only the container runtime's default privileges.
func mover(r *record, role, image string, taints []corev1.Taint) *corev1.Pod {
	claim, where := r.Claim.Name, r.where(role)
	if role == writes {
		claim = r.Copy
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.Claim.Namespace, Name: podName(r, role),
			Labels:      map[string]string{v1alpha1.LabelManagedBy: manager, v1alpha1.LabelMove: r.ID},
			Annotations: map[string]string{v1alpha1.AnnotationMoveClaim: r.Claim.Namespace + "/" + r.Claim.Name},
		},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			AutomountServiceAccountToken:  ptr.To(false),
			EnableServiceLinks:            ptr.To(false),
			Tolerations:                   tolerations(taints),
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: v1alpha1.LabelClusterID, Operator: corev1.NodeSelectorOpIn, Values: []string{where.ClusterID}}},
				}}},
			}},
			Volumes: []corev1.Volume{{Name: volumeName, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
			}}},
		},
	}
	c := corev1.Container{
		Name: container, Image: image, Command: []string{"sh", "-c", idle},
		SecurityContext: &corev1.SecurityContext{RunAsUser: ptr.To[int64](0), RunAsNonRoot: ptr.To(false), AllowPrivilegeEscalation: ptr.To(false)},
	}
	if isBlock(r) {
		c.VolumeDevices = []corev1.VolumeDevice{{Name: volumeName, DevicePath: devicePath}}
		c.Env = []corev1.EnvVar{{Name: volumeVariable, Value: devicePath}}
	} else {
		c.VolumeMounts = []corev1.VolumeMount{{Name: volumeName, MountPath: mountPath, ReadOnly: role == reads}}
		c.Env = []corev1.EnvVar{{Name: volumeVariable, Value: mountPath}}
	}
	pod.Spec.Containers = []corev1.Container{c}
	return pod
}

func isBlock(r *record) bool {
	return ptr.Deref(r.Claim.Spec.VolumeMode, corev1.PersistentVolumeFilesystem) == corev1.PersistentVolumeBlock
}

// tolerations returns tolerations for the taints that an admin set on a virtual node, but not for
// the taints of unhealthy nodes.
func tolerations(taints []corev1.Taint) []corev1.Toleration {
	var all []corev1.Toleration
	for _, t := range taints {
		if strings.HasPrefix(t.Key, "node.kubernetes.io/") || t.Key == v1alpha1.TaintMemberAway {
			continue
		}
		all = append(all, corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpEqual, Value: t.Value, Effect: t.Effect})
	}
	return all
}
