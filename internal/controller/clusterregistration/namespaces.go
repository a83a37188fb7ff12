package clusterregistration

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
)

// hasNamespaceRules reports whether a registration has the condition NamespacesAdmitted. An empty list of
// denied namespaces admits more than the default, which the condition reports.
func hasNamespaceRules(cr *v1alpha1.ClusterRegistration) bool {
	return placement.RulesOfRegistration(cr).RestrictsNamespaces() || len(placement.LiftedDenials(cr)) > 0
}

// namespacesCondition returns the NamespacesAdmitted condition. It returns none if the registration
// has no rules for namespaces.
func (r *Reconciler) namespacesCondition(ctx context.Context, cr *v1alpha1.ClusterRegistration) ([]metav1.Condition, error) {
	if !hasNamespaceRules(cr) {
		meta.RemoveStatusCondition(&cr.Status.Conditions, v1alpha1.ConditionNamespacesAdmitted)
		account.DeleteNamespaceMetrics(cr.Name)
		return nil, nil
	}
	var list corev1.NamespaceList
	if err := r.Client.List(ctx, &list, index.ReadOnly); err != nil {
		return nil, fmt.Errorf("list the host's namespaces: %w", err)
	}
	has, err := r.countByNamespace(cr)
	if err != nil {
		return nil, err
	}
	there, a := placement.MemberOfRegistration(cr, nil), NamespaceAdmission{HostNamespaces: len(list.Items), LeftContents: map[string]NamespaceContents{}, LiftedDenials: placement.LiftedDenials(cr)}
	for i := range list.Items {
		name := list.Items[i].Name
		refusal := there.AnswerRequest(placement.Request{Namespace: placement.NamespaceOf(name, &list.Items[i])}).Refusal
		if refusal == nil {
			a.Admitted++
		} else if has[name] != (NamespaceContents{}) && refusal.Reason == v1alpha1.ReasonNamespaceNotAdmitted {
			a.LeftContents[name] = has[name]
		}
	}
	var left NamespaceContents
	for _, has := range a.LeftContents {
		left.Claims, left.Pods = left.Claims+has.Claims, left.Pods+has.Pods
	}
	account.SetNamespaceMetrics(cr.Name, a.Admitted, left.Claims, left.Pods)
	return []metav1.Condition{a.AdmittedCondition()}, nil
}

// countByNamespace counts, by namespace, the claims and Pods that are placed in the member.
func (r *Reconciler) countByNamespace(cr *v1alpha1.ClusterRegistration) (map[string]NamespaceContents, error) {
	has := map[string]NamespaceContents{}
	if cr.Status.ClusterID == "" {
		return has, nil
	}
	count := func(obj client.Object, claims, pods int) {
		was := has[obj.GetNamespace()]
		has[obj.GetNamespace()] = NamespaceContents{Claims: was.Claims + claims, Pods: was.Pods + pods}
	}
	owner := route.Owner{NodeName: cr.NodeName(), ClusterID: cr.Status.ClusterID}
	err := errors.Join(
		r.Router.VisitObjects(owner, &corev1.PersistentVolumeClaim{}, metav1.NamespaceAll, func(obj client.Object) {
			if placed := obj.GetAnnotations()[v1alpha1.AnnotationPlacedIn]; placed == cr.Status.ClusterID {
				count(obj, 1, 0)
			}
		}),
		r.Router.VisitObjects(owner, &corev1.Pod{}, metav1.NamespaceAll, func(obj client.Object) {
			if pod, ok := obj.(*corev1.Pod); ok && cr.HasNode(pod.Spec.NodeName) && podPlacementOf(pod) == (podPlacement{node: pod.Spec.NodeName, pushed: true}) {
				count(obj, 0, 1)
			}
		}))
	if err != nil {
		return nil, fmt.Errorf("count the claims and Pods of registration %s: %w", cr.Name, err)
	}
	return has, nil
}

// podPlacement contains the Pod fields that contents depends on.
type podPlacement struct {
	node             string
	pushed, finished bool
}

func podPlacementOf(pod *corev1.Pod) podPlacement {
	return podPlacement{node: pod.Spec.NodeName, pushed: podstatus.PushedStatus(pod) == corev1.ConditionTrue, finished: podstatus.IsPodFinished(pod)}
}

// announceNamespacesNotAdmitted emits an event on the registration when the member still has objects of
// namespaces that the rules do not admit, or when the rules admit no namespace. It emits another
// one after the registration's spec changes.
func (r *Reconciler) announceNamespacesNotAdmitted(before, after *v1alpha1.ClusterRegistration) {
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionNamespacesAdmitted)
	is := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionNamespacesAdmitted)
	if is == nil || is.Status != metav1.ConditionFalse || was != nil && was.Reason == is.Reason && was.ObservedGeneration == is.ObservedGeneration {
		return
	}
	r.Recorder.Eventf(after, nil, corev1.EventTypeWarning, is.Reason, "Admit", "%s", is.Message)
}

// namespaceRulesToRequests enqueues the registrations that have rules for namespaces.
func (r *Reconciler) namespaceRulesToRequests(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.requestsMatching(ctx, hasNamespaceRules)
}

// restrictedNodeToRequests enqueues the registration on whose node the Pod runs, if it has rules for
// namespaces.
func (r *Reconciler) restrictedNodeToRequests(ctx context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" {
		return nil
	}
	return r.requestsMatching(ctx, func(cr *v1alpha1.ClusterRegistration) bool {
		return cr.HasNode(pod.Spec.NodeName) && hasNamespaceRules(cr)
	})
}
