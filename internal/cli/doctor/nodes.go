package doctor

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/text"
)

// NodeAPI checks whether the API server reaches the manager as the kubelet of virtual nodes.
func judgeNodeAPI(h *Host) []Finding {
	if !h.Nodes.Read || len(h.Nodes.Items) == 0 {
		return nil
	}
	if len(h.Paths) == 0 {
		return []Finding{Passed(CheckNodeAPI, "", "the node API is disabled (--node-api-bind-address), so kubectl logs, exec and port-forward do not work for Pods on virtual nodes")}
	}
	var reached int
	failed := map[string][]string{} // nodes by error; usually, all have the same error, because they share an address
	for _, node := range slices.Sorted(maps.Keys(h.Paths)) {
		switch p := h.Paths[node]; {
		case p.Code == http.StatusOK:
			reached++
		case p.Own: // the check is not possible
		case p.Code == http.StatusForbidden, p.Code == http.StatusUnauthorized:
			const rejects = "the manager rejects the API server, whose client certificate is missing or has no permission for nodes/proxy"
			failed[rejects] = append(failed[rejects], node)
		default:
			failed[p.Detail] = append(failed[p.Detail], node)
		}
	}
	var found []Finding
	for _, why := range slices.Sorted(maps.Keys(failed)) {
		found = append(found, Problem(Error, CheckNodeAPI, "", fmt.Sprintf("kubectl logs and exec don't work for Pods on %s, because the API server can't reach the manager as the kubelet: %s", Named("node", failed[why]), why),
			"Allow the control plane to reach the manager's Pods on the node API port (10250), including in NetworkPolicies and egress selectors. See charts/xylem/NODES.md."))
	}
	if len(found) == 0 && reached > 0 {
		found = append(found, Passed(CheckNodeAPI, "", "the API server reaches the manager as the kubelet of %s", text.Count(reached, "virtual node")))
	}
	return found
}

// DaemonSets finds DaemonSets that create Pods for virtual nodes.
func judgeDaemonSets(h *Host) []Finding {
	if !h.DaemonSets.Read || !h.Nodes.Read {
		return nil
	}
	var names []string
	for i := range h.DaemonSets.Items {
		d := &h.DaemonSets.Items[i]
		if slices.ContainsFunc(h.Nodes.Items, func(n corev1.Node) bool { return runsOn(d, &n) }) {
			names = append(names, d.Namespace+"/"+d.Name)
		}
	}
	if len(names) > 0 {
		return []Finding{Problem(Warning, CheckDaemonSets, "", fmt.Sprintf("the DaemonSet controller creates Pods of %s for virtual nodes, but Xylem doesn't push them. The Pods stay Pending, and a rolling update may never complete", Named("DaemonSet", names)),
			`Exclude virtual nodes in the DaemonSet's node affinity: {key: xylem.io/virtual-node, operator: DoesNotExist}.`)}
	}
	return []Finding{Passed(CheckDaemonSets, "", "no DaemonSet creates Pods for virtual nodes")}
}

// tolerated are the tolerations that the DaemonSet controller adds to all its Pods
// (k8s.io/kubernetes/pkg/controller/daemon/util: AddOrUpdateDaemonPodTolerations).
var tolerated = []corev1.Toleration{
	{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeDiskPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodePIDPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeNetworkUnavailable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
}

func runsOn(d *appsv1.DaemonSet, node *corev1.Node) bool {
	pod := &corev1.Pod{Spec: *d.Spec.Template.Spec.DeepCopy()}
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, tolerated...)
	// Ignore the taint of an away member, because it is temporary.
	keepsOff := func(t corev1.Taint) bool { return t.Key != v1alpha1.TaintMemberAway }
	return placement.Selects(pod, node) && !slices.ContainsFunc(placement.Untolerated(pod, node), keepsOff)
}
