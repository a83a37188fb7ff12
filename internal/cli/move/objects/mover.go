package objects

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/move/transfer"
	"github.com/xylem-io/xylem/internal/mirror"
)

// Role is what a Pod does. It is part of the Pod's name.
type Role string

// Roles of the two Pods.
const (
	// Reader reads the old disk.
	Reader Role = "from"
	// Writer writes the copy.
	Writer Role = "to"
)

// PlaceOfRole returns the member where the Pod with the role runs.
func (role Role) PlaceOfRole(r *Record) Place {
	if role == Writer {
		return r.To
	}
	return r.From
}

const (
	volumeName = "volume"
	// mountPath and devicePath are the paths of a volume in the container.
	mountPath  = "/volume"
	devicePath = "/dev/volume"
)

// idleScript makes the container wait until it is deleted.
const idleScript = `trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done`

// MoverName returns the name of a Pod of a move. Each run creates new Pods, so that an earlier run's
// stream can no longer write to the copy.
func MoverName(r *Record, role Role) string {
	return NameForMove(r.Claim.Name, r.ID) + "-" + string(role) + "-" + r.Run
}

// MoverPod returns a Pod of a move. The Pod runs as root to read and write files of all owners, but
// has only the container runtime's default privileges. taints are those of the member's virtual
// node.
func MoverPod(r *Record, role Role, image string, taints []corev1.Taint) *corev1.Pod {
	claim := r.Claim.Name
	if role == Writer {
		claim = r.Copy
	}
	pod := &corev1.Pod{
		ObjectMeta: r.MetaOfCopy(MoverName(r, role)),
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			AutomountServiceAccountToken:  ptr.To(false),
			EnableServiceLinks:            ptr.To(false),
			Tolerations:                   tolerations(taints),
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: mirror.NodeSelectorForLabel(v1alpha1.LabelClusterID, role.PlaceOfRole(r).ClusterID),
			}},
			Volumes: []corev1.Volume{{Name: volumeName, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
			}}},
		},
	}
	c := corev1.Container{
		Name: transfer.Container, Image: image, Command: []string{"sh", "-c", idleScript},
		SecurityContext: &corev1.SecurityContext{RunAsUser: ptr.To[int64](0), RunAsNonRoot: ptr.To(false), AllowPrivilegeEscalation: ptr.To(false)},
	}
	if r.IsBlock() {
		c.VolumeDevices = []corev1.VolumeDevice{{Name: volumeName, DevicePath: devicePath}}
		c.Env = []corev1.EnvVar{{Name: transfer.VolumeVariable, Value: devicePath}}
	} else {
		c.VolumeMounts = []corev1.VolumeMount{{Name: volumeName, MountPath: mountPath, ReadOnly: role == Reader}}
		c.Env = []corev1.EnvVar{{Name: transfer.VolumeVariable, Value: mountPath}}
	}
	pod.Spec.Containers = []corev1.Container{c}
	return pod
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
