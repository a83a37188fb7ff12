package mirror

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// TranslatePod is the leaf Pod of a root Pod, origin and push record included,
// by the decisions of FIELDS.md. The error, if any, is a *Refusal whose message
// names every field that stands in the way.
//
// It still refers to ConfigMaps and Secrets by the names of the roots: see PointAt.
// What the member's admission adds to the leaf later (defaults, its service
// account, sidecars) is the member's: see LeafPodDrift.
func TranslatePod(root *corev1.Pod, m Member) (*corev1.Pod, error) {
	leaf := &corev1.Pod{ObjectMeta: leafMeta(root.ObjectMeta), Spec: *root.Spec.DeepCopy()}
	dropTokenVolume(&leaf.Spec)
	claimEphemeralVolumes(root.Name, &leaf.Spec)
	place(&leaf.Spec, root.Labels, m)
	leaf.Spec.AutomountServiceAccountToken = new(bool)

	if refused := shaped(podShape, &leaf.Spec, podTable.root); len(refused) > 0 {
		return nil, &Refusal{
			Reason:  v1alpha1.ReasonPodUnsupported,
			Message: "the Pod cannot run in a member cluster: " + strings.Join(refused, "; "),
		}
	}
	recordPush(leaf)
	OriginFor(m.HostID, root).Stamp(leaf)
	return leaf, nil
}

// IsDaemonSetPod reports whether a DaemonSet controls the Pod. Those are not
// pushed: they are about the node itself, and a virtual node has no machine.
func IsDaemonSetPod(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "DaemonSet" && strings.HasPrefix(owner.APIVersion, "apps/")
}

// KeptOut reports whether a Pod is not pushed, wherever it is bound: a DaemonSet's,
// unless it was pushed before a DaemonSet adopted it.
func KeptOut(pod *corev1.Pod) bool {
	return IsDaemonSetPod(pod) && Pushed(pod) != corev1.ConditionTrue
}
