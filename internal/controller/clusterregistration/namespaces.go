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
	"github.com/xylem-io/xylem/internal/controller/clusterregistration/conditions"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
)

// hasNamespaceRules reports whether a registration has the condition NamespacesAdmitted. An empty list of
// denied namespaces admits more than the default, which the condition reports.
func hasNamespaceRules(cr *v1alpha1.ClusterRegistration) bool {
	return placement.RulesOf(cr).RestrictsNamespaces() || len(placement.LiftedDenials(cr)) > 0
}

// namespacesAdmitted returns the NamespacesAdmitted condition. It returns none if the registration
// has no rules for namespaces.
func (r *Reconciler) namespacesAdmitted(ctx context.Context, cr *v1alpha1.ClusterRegistration) ([]metav1.Condition, error) {
	if !hasNamespaceRules(cr) {
		meta.RemoveStatusCondition(&cr.Status.Conditions, v1alpha1.ConditionNamespacesAdmitted)
		account.UncountNamespaces(cr.Name)
		return nil, nil
	}
	var list corev1.NamespaceList
	if err := r.Client.List(ctx, &list, index.ReadOnly); err != nil {
		return nil, fmt.Errorf("list the host's namespaces: %w", err)
	}
	has, err := r.contents(cr)
	if err != nil {
		return nil, err
	}
	there, a := placement.MemberOf(cr, nil), conditions.Admittance{All: len(list.Items), Left: map[string]conditions.Contents{}, Lifted: placement.LiftedDenials(cr)}
	for i := range list.Items {
		name := list.Items[i].Name
		refusal := there.Answer(placement.Request{Namespace: placement.NamespaceOf(name, &list.Items[i])}).Refusal
		if refusal == nil {
			a.Admitted++
		} else if has[name] != (conditions.Contents{}) && refusal.Reason == v1alpha1.ReasonNamespaceNotAdmitted {
			a.Left[name] = has[name]
		}
	}
	var left conditions.Contents
	for _, has := range a.Left {
		left.Claims, left.Pods = left.Claims+has.Claims, left.Pods+has.Pods
	}
	account.CountNamespaces(cr.Name, a.Admitted, left.Claims, left.Pods)
	return []metav1.Condition{a.Condition()}, nil
}

// contents counts, by namespace, the claims and Pods that are placed in the member.
func (r *Reconciler) contents(cr *v1alpha1.ClusterRegistration) (map[string]conditions.Contents, error) {
	has := map[string]conditions.Contents{}
	if cr.Status.ClusterID == "" {
		return has, nil
	}
	count := func(obj client.Object, claims, pods int) {
		was := has[obj.GetNamespace()]
		has[obj.GetNamespace()] = conditions.Contents{Claims: was.Claims + claims, Pods: was.Pods + pods}
	}
	owner := route.Owner{NodeName: cr.NodeName(), ClusterID: cr.Status.ClusterID}
	err := errors.Join(
		r.Objects.Each(owner, &corev1.PersistentVolumeClaim{}, metav1.NamespaceAll, func(obj client.Object) {
			if placed := obj.GetAnnotations()[v1alpha1.AnnotationPlacedIn]; placed == cr.Status.ClusterID {
				count(obj, 1, 0)
			}
		}),
		r.Objects.Each(owner, &corev1.Pod{}, metav1.NamespaceAll, func(obj client.Object) {
			if pod, ok := obj.(*corev1.Pod); ok && runningOf(pod) == (running{node: cr.NodeName(), pushed: true}) {
				count(obj, 0, 1)
			}
		}))
	if err != nil {
		return nil, fmt.Errorf("count the claims and Pods of registration %s: %w", cr.Name, err)
	}
	return has, nil
}

// running contains the Pod fields that contents depends on.
type running struct {
	node          string
	pushed, ended bool
}

func runningOf(pod *corev1.Pod) running {
	return running{node: pod.Spec.NodeName, pushed: podstatus.Pushed(pod) == corev1.ConditionTrue, ended: podstatus.Finished(pod)}
}

// announceNamespaces emits an event on the registration when the member still has objects of
// namespaces that the rules do not admit, or when the rules admit no namespace. It emits another
// one after the registration's spec changes.
func (r *Reconciler) announceNamespaces(before, after *v1alpha1.ClusterRegistration) {
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionNamespacesAdmitted)
	is := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionNamespacesAdmitted)
	if is == nil || is.Status != metav1.ConditionFalse || was != nil && was.Reason == is.Reason && was.ObservedGeneration == is.ObservedGeneration {
		return
	}
	r.Recorder.Eventf(after, nil, corev1.EventTypeWarning, is.Reason, "Admit", "%s", is.Message)
}

// restricting enqueues the registrations that have rules for namespaces.
func (r *Reconciler) restricting(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.matching(ctx, hasNamespaceRules)
}

// restrictingOfPod enqueues the registration on whose node the Pod runs, if it has rules for
// namespaces.
func (r *Reconciler) restrictingOfPod(ctx context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" {
		return nil
	}
	return r.matching(ctx, func(cr *v1alpha1.ClusterRegistration) bool {
		return cr.NodeName() == pod.Spec.NodeName && hasNamespaceRules(cr)
	})
}
