package hostclaim

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/report"
)

// waitingClaims are the unbound claims by what they wait for, so that a change
// around them wakes them and no other. Every unbound claim is noted in its own
// turn, the first of which it has when the manager starts.
type waitingClaims struct {
	mu     sync.Mutex
	claims map[types.NamespacedName]awaits
}

// awaits is a claim's class, and the node selected for it, if any.
type awaits struct{ class, node string }

func newWaitingClaims() *waitingClaims {
	return &waitingClaims{claims: map[types.NamespacedName]awaits{}}
}

func (w *waitingClaims) note(key types.NamespacedName, class, node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.claims[key] = awaits{class, node}
}

func (w *waitingClaims) forget(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.claims, key)
}

func (w *waitingClaims) requests(match func(awaits) bool) []reconcile.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	var requests []reconcile.Request
	for key, what := range w.claims {
		if match(what) {
			requests = append(requests, reconcile.Request{NamespacedName: key})
		}
	}
	return requests
}

// ofClaim is a claim that waits; an update is asked for both states, so that
// one that was just bound is forgotten.
func ofClaim(_ context.Context, obj client.Object) []reconcile.Request {
	claim, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok || !waiting(claim) && report.ClaimProblem(claim, v1alpha1.ClaimPlaceable) == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(claim)}}
}

// ofPod are the claims of a Pod that cannot be scheduled.
func ofPod(_ context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok || !unschedulable(pod) {
		return nil
	}
	var requests []reconcile.Request
	for _, name := range podspec.ClaimNames(pod) {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: pod.Namespace, Name: name}})
	}
	return requests
}

// ofNode are the claims for which the node was selected, and, of a virtual one, those that
// have still to be placed: its labels say whether their class allows it.
func (r *Reconciler) ofNode(_ context.Context, node client.Object) []reconcile.Request {
	virtual := node.GetLabels()[v1alpha1.LabelVirtualNode] == "true"
	return r.waiting.requests(func(a awaits) bool { return a.node == node.GetName() || a.node == "" && virtual })
}

func (r *Reconciler) ofClass(_ context.Context, class client.Object) []reconcile.Request {
	return r.waiting.requests(func(a awaits) bool { return a.class == class.GetName() })
}

func (r *Reconciler) ofCapacity(_ context.Context, obj client.Object) []reconcile.Request {
	capacity, ok := obj.(*storagev1.CSIStorageCapacity)
	if !ok || capacity.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByValue {
		return nil
	}
	return r.waiting.requests(func(a awaits) bool { return a.class == capacity.StorageClassName })
}

func (r *Reconciler) ofRegistration(context.Context, client.Object) []reconcile.Request {
	return r.waiting.requests(func(awaits) bool { return true })
}

// relabelled drops the updates of Nodes that change no label: heartbeats.
func relabelled() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !equality.Semantic.DeepEqual(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels())
	}}
}

// changedForClaims drops the updates of registrations that no claim cares for.
func changedForClaims() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.ClusterRegistration)
		after, okay := e.ObjectNew.(*v1alpha1.ClusterRegistration)
		return !ok || !okay || before.Generation != after.Generation ||
			before.Status.ClusterID != after.Status.ClusterID ||
			(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
			connection(before) != connection(after)
	}}
}

// connection is what claims have to do with of the Connected condition.
func connection(cr *v1alpha1.ClusterRegistration) [2]string {
	condition := meta.FindStatusCondition(cr.Status.Conditions, v1alpha1.ConditionConnected)
	if condition == nil {
		return [2]string{}
	}
	return [2]string{string(condition.Status), condition.Reason}
}
