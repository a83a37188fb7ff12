package nodeapi

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// HostID is the host's cluster ID.
const HostID = "host-1"

// RootAndLeafPods returns a root, its leaf, and the leaf's namespace.
func RootAndLeafPods() (root, leaf *corev1.Pod, namespace *corev1.Namespace) {
	root = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "root-1", Annotations: map[string]string{v1alpha1.AnnotationLeafUID: "leaf-1"}}}
	root.Spec.NodeName = "kosmos-one"
	root.Status.Conditions = []corev1.PodCondition{{Type: v1alpha1.PodPushed, Status: corev1.ConditionTrue}}
	leaf = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "leaf-1"}}
	mirror.OriginForRoot(HostID, root).StampLeaf(leaf)
	namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{v1alpha1.LabelHost: HostID}}}
	return root, leaf, namespace
}
