package clusterregistration

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/reflection"
)

// classesCondition returns the ClassesReflected condition. It returns none if the registration requests no
// classes. It also returns none, which keeps the last condition, if the member's classes are not
// known.
func (r *Reconciler) classesCondition(ctx context.Context, cr *v1alpha1.ClusterRegistration) ([]metav1.Condition, error) {
	if !reflection.IsReflectionEnabled(cr) {
		return nil, nil
	}
	var registrations v1alpha1.ClusterRegistrationList
	if err := r.Client.List(ctx, &registrations); err != nil {
		return nil, fmt.Errorf("list registrations: %w", err)
	}
	var classes storagev1.StorageClassList
	if err := r.Client.List(ctx, &classes); err != nil {
		return nil, fmt.Errorf("list the host's StorageClasses: %w", err)
	}
	named := make(map[string]*storagev1.StorageClass, len(classes.Items))
	for i := range classes.Items {
		named[classes.Items[i].Name] = &classes.Items[i]
	}
	view := reflection.View{Classes: r.Classes, Registrations: registrations.Items}
	summary, known := view.SummarizeRulings(cr, func(name string) *storagev1.StorageClass { return named[name] })
	if !known {
		return nil, nil
	}
	condition := metav1.Condition{Type: v1alpha1.ConditionClassesReflected, Status: metav1.ConditionFalse}
	var ok bool
	if ok, condition.Reason, condition.Message = summary.ConditionFields(); ok {
		condition.Status = metav1.ConditionTrue
	}
	return []metav1.Condition{condition}, nil
}

// announceReflection emits an event on the registration when classes are not published, and
// again when the message changes.
func (r *Reconciler) announceReflection(before, after *v1alpha1.ClusterRegistration) {
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionClassesReflected)
	is := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionClassesReflected)
	if is == nil || is.Status == metav1.ConditionTrue || was != nil && was.Message == is.Message {
		return
	}
	r.Recorder.Eventf(after, nil, corev1.EventTypeWarning, is.Reason, "Reflect", "%s", is.Message)
}
