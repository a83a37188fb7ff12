package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/fields"
)

// TranslatePod returns the leaf Pod of a root Pod according to FIELDS.md, including its origin and
// push record. The error, if any, is a *Refusal whose message names every refused field.
//
// The result still refers to ConfigMaps and Secrets by the names of the roots; see refs.PointAtCopies.
// Fields that the member's admission later adds to the leaf (defaults, its service account,
// sidecars) belong to the member; see PodDriftOf.
func TranslatePod(root *corev1.Pod, m mirror.Member) (*corev1.Pod, error) {
	leaf, refused := translatePodFields(root, m)
	if refused = append(refused, fields.QuantitiesOutOfRange(&leaf.Spec, PodFieldTable.PathPrefix)...); len(refused) > 0 {
		return nil, &mirror.Refusal{
			Reason:  v1alpha1.ReasonPodUnsupported,
			Message: "the Pod cannot run in a member: " + strings.Join(refused, "; "),
		}
	}
	if mirror.IsLeafTooLarge(leaf) {
		return nil, mirror.NewRefusal(v1alpha1.ReasonPodUnsupported, "the Pod cannot run in a member: it would take more than %s of the manager's memory. Use fewer volumes, containers, environment variables, labels or annotations", mirror.LeafSizeLimitText)
	}
	return leaf, nil
}

// translatePodFields returns the leaf Pod, and a line for each refused field. It does not check what a root can
// change later: the size, and the amounts of resources.
func translatePodFields(root *corev1.Pod, m mirror.Member) (leaf *corev1.Pod, refused []string) {
	leaf = &corev1.Pod{ObjectMeta: fields.TranslateMetadata(root.ObjectMeta), Spec: *root.Spec.DeepCopy()}
	leaf.Spec.EphemeralContainers = nil // AddDebugContainer adds them later
	if m.APIServer != nil {
		projectHostTokens(root, &leaf.Spec, m.APIServer)
	}
	dropTokenVolume(&leaf.Spec)
	claimEphemeralVolumes(root.Name, &leaf.Spec)
	KeepMemberConstraints(&leaf.Spec, root.Labels, m)
	leaf.Spec.AutomountServiceAccountToken = new(bool)
	leaf.Spec.PriorityClassName = m.PriorityClasses[root.Spec.PriorityClassName]

	refused = fields.ApplyDecisions(podDecisions, &leaf.Spec, PodFieldTable.PathPrefix)
	if m.APIServer != nil && len(TokensOfPod(root)) > maxTokens {
		refused = append(refused, fmt.Sprintf("spec.volumes: more than %d different service account tokens; project fewer audiences and lifetimes", maxTokens))
	}
	addPushRecord(leaf)
	mirror.OriginForRoot(m.HostID, root).StampLeaf(leaf)
	return leaf, refused
}

// IsDaemonSetPod reports whether a DaemonSet controls the Pod. Xylem does not push such Pods,
// because they serve their node's machine, and a virtual node has no machine.
func IsDaemonSetPod(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "DaemonSet" && strings.HasPrefix(owner.APIVersion, "apps/")
}
