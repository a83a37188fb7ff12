package oracle

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// leafOf returns the UID of the root for which a leaf Pod was created, or "" if it is not
// Xylem's.
func leafOf(e Evidence, cluster string, pod *corev1.Pod) types.UID {
	if cluster == e.Host || pod.Namespace != e.Namespace || pod.Labels[v1alpha1.LabelHost] != e.IDs[e.Host] {
		return ""
	}
	return types.UID(pod.Annotations[v1alpha1.AnnotationRootUID])
}

// again checks I6: the containers of a root Pod run only once, in any member. A leaf Pod may be
// created again only if it was withdrawn before its containers started. A restore may undo all
// records of the start in the clusters. In that case, the root determines whether a leaf should
// run.
func again(e Evidence, h *history) []Violation {
	var found []Violation
	for root, leaves := range h.leaves {
		for _, earlier := range leaves {
			start := slices.IndexFunc(earlier, func(s podAt) bool { return started(s.obj) })
			if start < 0 {
				continue
			}
			for uid, later := range leaves {
				created := later[0]
				if uid == earlier[0].obj.UID || !earlier[start].time.Before(created.time) || e.Restored != nil && h.toRun(root, created) {
					continue
				}
				found = append(found, Violation{"I6", "again", fmt.Sprintf("leaf Pod %s (%s) was created for root Pod %s, whose containers had run in leaf Pod %s",
					created.obj.Name, uid, root, earlier[0].obj.UID)})
			}
		}
	}
	return found
}

// started reports whether a container of a Pod runs, or has run.
func started(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.State.Running != nil || c.State.Terminated != nil
	})
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// pushed reports whether a root Pod's status shows that a leaf runs or has run for it.
func pushed(root *corev1.Pod) bool {
	return slices.ContainsFunc(root.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == v1alpha1.PodPushed && c.Status == corev1.ConditionTrue
	})
}

// toRun reports whether a root Pod should run at the time when a leaf Pod was created for it: it
// existed, had not ended, and did not show that a leaf runs.
func (h *history) toRun(root types.UID, leaf podAt) bool {
	s, known := before(h.pods[root], leaf.time.Add(-lag))
	return known && !s.gone && s.obj.DeletionTimestamp == nil && !finished(s.obj) && !pushed(s.obj)
}

// unfinished checks I6 at the end: no leaf Pod runs, or will run, for a root Pod that has ended or
// was deleted.
func unfinished(e Evidence, _ *history) []Violation {
	alive := map[types.UID]bool{}
	for _, s := range e.Live {
		if pod, ok := s.Object.(*corev1.Pod); ok && s.Cluster == e.Host {
			alive[pod.UID] = !finished(pod)
		}
	}
	var found []Violation
	for _, s := range e.Live {
		pod, ok := s.Object.(*corev1.Pod)
		if !ok || finished(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		if root := leafOf(e, s.Cluster, pod); root != "" && !alive[root] {
			found = append(found, Violation{"I6", "unfinished", fmt.Sprintf("leaf Pod %s in %s is %s, and its root Pod %s has ended", pod.Name, s.Cluster, pod.Status.Phase, root)})
		}
	}
	return found
}
