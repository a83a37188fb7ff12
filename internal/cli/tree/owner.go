package tree

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/wording"
)

// readOwner reads a workload or a namespace. It returns its node and the selector of its Pods.
func (r reading) readOwner(ctx context.Context, t target) (*inspect.Node, labels.Selector, error) {
	var obj client.Object
	var w workload
	var read func() // fills w from obj
	switch t.kind {
	case kindDeployment:
		d := &appsv1.Deployment{}
		obj, read = d, func() {
			w.wanted, w.ready, w.selector = ptr.Deref(d.Spec.Replicas, 1), d.Status.ReadyReplicas, d.Spec.Selector
			for _, c := range d.Status.Conditions {
				w.addProblem(string(c.Type), c.Status, c.Reason, c.Message, c.LastTransitionTime)
			}
		}
	case kindStatefulSet:
		s := &appsv1.StatefulSet{}
		obj, read = s, func() {
			w.wanted, w.ready, w.selector = ptr.Deref(s.Spec.Replicas, 1), s.Status.ReadyReplicas, s.Spec.Selector
		}
	case kindDaemonSet:
		d := &appsv1.DaemonSet{}
		obj, read = d, func() {
			w.wanted, w.ready, w.selector = d.Status.DesiredNumberScheduled, d.Status.NumberReady, d.Spec.Selector
		}
	case kindReplicaSet:
		s := &appsv1.ReplicaSet{}
		obj, read = s, func() {
			w.wanted, w.ready, w.selector = ptr.Deref(s.Spec.Replicas, 1), s.Status.ReadyReplicas, s.Spec.Selector
			for _, c := range s.Status.Conditions {
				w.addProblem(string(c.Type), c.Status, c.Reason, c.Message, c.LastTransitionTime)
			}
		}
	case kindJob:
		j := &batchv1.Job{}
		obj, read = j, func() {
			w.wanted, w.ready, w.selector = ptr.Deref(j.Spec.Completions, 1), j.Status.Succeeded, j.Spec.Selector
			for _, c := range j.Status.Conditions {
				w.addProblem(string(c.Type), c.Status, c.Reason, c.Message, c.LastTransitionTime)
			}
		}
	default:
		var namespace corev1.Namespace
		if err := r.readOwnerObject(ctx, t, &namespace); err != nil {
			return nil, nil, err
		}
		n := NodeOfObject(t.kind, "", &namespace, PhaseOrUnknown(string(namespace.Status.Phase)), inspect.Good)
		return &n, labels.Everything(), nil
	}
	if err := r.readOwnerObject(ctx, t, obj); err != nil {
		return nil, nil, err
	}
	read()
	pods, err := metav1.LabelSelectorAsSelector(w.selector)
	if err != nil {
		return nil, nil, fmt.Errorf("read the selector of %s %q: %w", t.kind, obj.GetName(), err)
	}
	return w.nodeOfWorkload(t.kind, obj), pods, nil
}

// workload is what a tree needs of a workload.
type workload struct {
	// ready is the number of ready Pods, or of those of a Job that succeeded.
	wanted, ready int32
	selector      *metav1.LabelSelector
	// done is true if a Job is complete.
	done     bool
	problems []inspect.Condition
}

// addProblem adds a condition if it reports a problem.
func (w *workload) addProblem(kind string, status corev1.ConditionStatus, reason, message string, since metav1.Time) {
	if status != corev1.ConditionTrue {
		return
	}
	switch kind {
	case string(batchv1.JobComplete), string(batchv1.JobSuccessCriteriaMet):
		w.done = true
		return
	case string(appsv1.DeploymentReplicaFailure), string(batchv1.JobFailed), string(batchv1.JobSuspended):
	default:
		return
	}
	w.problems = append(w.problems, inspect.ConditionOf(kind, string(status), reason, message, since))
}

func (w *workload) nodeOfWorkload(kind string, obj client.Object) *inspect.Node {
	word := "ready"
	if kind == kindJob {
		word = "succeeded"
	}
	state, health := "Ready", inspect.Good
	switch {
	case w.done || w.ready >= w.wanted && len(w.problems) == 0:
	case len(w.problems) > 0:
		state, health = "NotReady", inspect.Bad
	default:
		state, health = "NotReady", inspect.Waiting
	}
	n := NodeOfObject(kind, "", obj, state, health)
	n.Details = append(n.Details, fmt.Sprintf("%d of %s %s", w.ready, wording.CountNoun(int(w.wanted), "Pod"), word))
	if !w.done {
		n.Conditions = w.problems
	}
	return &n
}

// readOwnerObject reads the requested object.
func (r reading) readOwnerObject(ctx context.Context, t target, into client.Object) error {
	key := types.NamespacedName{Namespace: r.namespace, Name: t.name}
	if t.kind == kindNamespace {
		key.Namespace = ""
	}
	if err := r.host.Get(ctx, key, into); err != nil {
		return r.suggestNearest(ctx, t, fmt.Errorf("read %s %q: %w", t.kind, key, err))
	}
	return nil
}

func namesInList(list client.ObjectList) []string {
	var found []string
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil
	}
	for _, item := range items {
		if obj, ok := item.(client.Object); ok {
			found = append(found, obj.GetName())
		}
	}
	slices.Sort(found)
	return found
}
