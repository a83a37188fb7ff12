package doctor

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/placement"
)

// CheckDaemonSets is the name of this check.
const CheckDaemonSets Check = "DaemonSets"

var daemonSetsCheck = checkOf[*Facts]{name: CheckDaemonSets, read: readDaemonSets, judge: infallible(judgeDaemonSets)}

func readDaemonSets(ctx context.Context, r *inspect.Reader, f *Facts) {
	f.Host.DaemonSets = inspect.ReadList(ctx, r, "DaemonSets", &appsv1.DaemonSetList{}, func(l *appsv1.DaemonSetList) []appsv1.DaemonSet { return l.Items })
}

// judgeDaemonSets finds DaemonSets that create Pods for virtual nodes.
func judgeDaemonSets(f *Facts) []Finding {
	h := &f.Host
	if !h.DaemonSets.Read || !h.Nodes.Read {
		return nil
	}
	var names []string
	for i := range h.DaemonSets.Items {
		d := &h.DaemonSets.Items[i]
		if slices.ContainsFunc(h.Nodes.Items, func(n corev1.Node) bool { return daemonSetRunsOn(d, &n) }) {
			names = append(names, d.Namespace+"/"+d.Name)
		}
	}
	if len(names) > 0 {
		return []Finding{problem(Warning, fmt.Sprintf("the DaemonSet controller creates Pods of %s for virtual nodes, but Xylem doesn't push them. The Pods stay Pending, and a rolling update may never complete", enumerateNamed("DaemonSet", names)),
			`Exclude virtual nodes in the DaemonSet's node affinity: {key: xylem.io/virtual-node, operator: DoesNotExist}.`)}
	}
	return []Finding{passed("no DaemonSet creates Pods for virtual nodes")}
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

func daemonSetRunsOn(d *appsv1.DaemonSet, node *corev1.Node) bool {
	pod := &corev1.Pod{Spec: *d.Spec.Template.Spec.DeepCopy()}
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, tolerated...)
	// Ignore the taint of an away member, because it is temporary.
	keepsOff := func(t corev1.Taint) bool { return t.Key != v1alpha1.TaintMemberAway }
	return placement.PodSelectsNode(pod, node) && !slices.ContainsFunc(placement.UntoleratedTaints(pod, node), keepsOff)
}
