package mirror

import (
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// ReservedNamespace reports whether a name is one of Kubernetes' own or of
// Xylem's: what runs or lies there in a member has rights that no host's tenant
// is to get, so that nothing is pushed there, whoever labels it.
func ReservedNamespace(name string) bool {
	return strings.HasPrefix(name, "kube-") || name == v1alpha1.DefaultNamespace
}

// UseNamespace says whether leaves may be put into a member's namespace: into
// one that Xylem made for this host, or that the member's admin handed to it.
// A nil namespace is not there yet: it is being made, and nothing is refused.
// What is refused is allowed again as soon as the namespace is another, unless
// its name is reserved.
func UseNamespace(name string, ns *corev1.Namespace, hostID, registration string) (bool, *Refusal) {
	if ReservedNamespace(name) {
		return false, &Refusal{Reason: v1alpha1.ReasonNamespaceReserved, Message: fmt.Sprintf(
			"namespace %s is a cluster's own, so nothing is pushed into that of member %s: use a namespace of another name", name, registration)}
	}
	if ns == nil {
		return false, nil
	}
	switch holder := ns.Labels[v1alpha1.LabelHost]; {
	case holder == "":
		return false, &Refusal{Reason: v1alpha1.ReasonNamespaceConflict, Message: fmt.Sprintf(
			"member %[1]s has a namespace %[2]s that is not this host's: its admin can hand it over with `kubectl label namespace %[2]s %[3]s=%[4]s`; else use a namespace of another name",
			registration, ns.Name, v1alpha1.LabelHost, hostID)}
	case holder != hostID:
		return false, &Refusal{Reason: v1alpha1.ReasonNamespaceConflict, Message: fmt.Sprintf(
			"member %[1]s has a namespace %[2]s that is another host's (%[3]s=%[4]s): use a namespace of another name, or let its admin hand it over with `kubectl label --overwrite namespace %[2]s %[3]s=%[5]s` when the other host has left it",
			registration, ns.Name, v1alpha1.LabelHost, holder, hostID)}
	}
	if ns.DeletionTimestamp != nil || ns.Status.Phase == corev1.NamespaceTerminating {
		return false, &Refusal{Reason: v1alpha1.ReasonNamespaceTerminating, Message: fmt.Sprintf(
			"namespace %[2]s of member %[1]s is terminating, and is made anew when it is gone; if it does not go, `kubectl get namespace %[2]s -o yaml` in the member says in its conditions what holds it",
			registration, ns.Name)}
	}
	return true, nil
}

// MadeByUs reports whether a member's namespace carries the whole stamp of this
// host, for this very name: one that was only handed over is its admin's, and
// never changed or removed.
func MadeByUs(ns *corev1.Namespace, hostID string) bool {
	if ns == nil {
		return false
	}
	origin, ours := OriginIn(hostID, ns)
	return ours && origin.Root == types.NamespacedName{Name: ns.Name}
}

// podSecurityPrefix starts the labels by which a namespace asks for Pod
// Security admission.
const podSecurityPrefix = "pod-security.kubernetes.io/"

// PodSecurityLabels are the labels of a host namespace by which Pod Security
// admission judges, to be put on the member's namespace of the same name.
func PodSecurityLabels(root *corev1.Namespace) map[string]string {
	labels := maps.Clone(root.Labels)
	maps.DeleteFunc(labels, func(key, _ string) bool { return !strings.HasPrefix(key, podSecurityPrefix) })
	return labels
}

// LeafNamespace is the namespace that Xylem makes in a member for the
// leaves of a host namespace, origin included. Of its labels only those of Pod
// Security are carried: others hand out rights and quotas in the host, and what
// they would do in the member is the member's admin's to say.
func LeafNamespace(root *corev1.Namespace, hostID string) *corev1.Namespace {
	leaf := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: root.Name, Labels: PodSecurityLabels(root)}}
	OriginFor(hostID, root).Stamp(leaf)
	return leaf
}
