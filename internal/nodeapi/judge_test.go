package nodeapi

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

const hostID = HostID

var pods = RootAndLeafPods

func TestJudge(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(root, leaf *corev1.Pod, namespace *corev1.Namespace)
		gone   bool // the leaf is gone
		code   int
		says   string
	}{
		"the root's leaf": {func(*corev1.Pod, *corev1.Pod, *corev1.Namespace) {}, false, 0, ""},
		"pushed by a version that did not record the UID": {func(root, _ *corev1.Pod, _ *corev1.Namespace) {
			delete(root.Annotations, v1alpha1.AnnotationLeafUID)
		}, false, 0, ""},
		"not marked as pushed yet, with the UID of an earlier Pod's leaf": {func(root, _ *corev1.Pod, _ *corev1.Namespace) {
			root.Status.Conditions, root.Annotations[v1alpha1.AnnotationLeafUID] = nil, "leaf-0"
		}, false, 0, ""},
		"the namespace is terminating": {func(_, _ *corev1.Pod, ns *corev1.Namespace) {
			ns.Status.Phase = corev1.NamespaceTerminating
		}, false, 0, ""},
		"not pushed yet":   {func(root, _ *corev1.Pod, _ *corev1.Namespace) { root.Status.Conditions = nil }, true, http.StatusBadRequest, "has not created the Pod there"},
		"the leaf is gone": {func(*corev1.Pod, *corev1.Pod, *corev1.Namespace) {}, true, http.StatusNotFound, "is gone from member"},
		"another leaf with the same stamp (I8)": {func(_, leaf *corev1.Pod, _ *corev1.Namespace) {
			leaf.UID = "leaf-2"
		}, false, http.StatusForbidden, "was replaced"},
		"a foreign Pod (I4)": {func(_, leaf *corev1.Pod, _ *corev1.Namespace) {
			leaf.Labels, leaf.Annotations = nil, nil
		}, false, http.StatusForbidden, "did not create"},
		"another host's Pod (I4)": {func(_, leaf *corev1.Pod, _ *corev1.Namespace) {
			leaf.Labels[v1alpha1.LabelHost] = "host-2"
		}, false, http.StatusForbidden, "did not create"},
		"the leaf of an earlier root": {func(root, _ *corev1.Pod, _ *corev1.Namespace) {
			root.UID = types.UID("root-2")
		}, false, http.StatusForbidden, "did not create"},
		"a namespace without a host label": {func(_, _ *corev1.Pod, ns *corev1.Namespace) { ns.Labels = nil }, false, http.StatusForbidden, "does not belong to this host"},
		"a namespace of another host (I8)": {func(_, _ *corev1.Pod, ns *corev1.Namespace) {
			ns.Labels[v1alpha1.LabelHost] = "host-2"
		}, false, http.StatusForbidden, "does not belong to this host"},
		"a system namespace in the member": {func(root, leaf *corev1.Pod, ns *corev1.Namespace) {
			root.Namespace, leaf.Namespace, ns.Name = "kube-system", "kube-system", "kube-system"
			mirror.OriginForRoot(hostID, root).StampLeaf(leaf)
		}, false, http.StatusForbidden, "does not belong to this host"},
	} {
		t.Run(name, func(t *testing.T) {
			root, leaf, namespace := pods()
			tc.change(root, leaf, namespace)
			if tc.gone {
				leaf = nil
			}
			got := judgeLeafPod(&Target{Root: root, Registration: "one", Upstream: &Upstream{Member: mirror.Member{Registration: "one", HostID: hostID}}}, hostID, leaf, namespace)
			code, message := 0, ""
			if got != nil {
				code, message = got.Code, got.MessageLine()
			}
			if code != tc.code || !strings.Contains(message, tc.says) {
				t.Errorf("%d %q, want %d %q", code, message, tc.code, tc.says)
			}
		})
	}
}
