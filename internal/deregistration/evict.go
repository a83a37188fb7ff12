package deregistration

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/sanitize"
	"github.com/xylem-io/xylem/internal/text"
)

// leafPod is the owner of Pod statuses. The leaf_pod controller of a lost member does not run.
const leafPod = guarded.Actor("leaf-pod")

// errorLimit is the maximum size of an API server's error in a message, in bytes.
const errorLimit = 300

// evict evicts the Pods, so that disruption budgets apply. The member's root_pod controller
// completes their deletion. If an admin forces the deregistration of a lost member, evict deletes
// the Pods immediately. A Pod that cannot be evicted does not keep the others.
func (r *Leaver) evict(ctx context.Context, cr *v1alpha1.ClusterRegistration, l *leaving) error {
	var blocked, failed []string
	var errs []error
	for i := range l.pods {
		pod := &l.pods[i]
		err := client.IgnoreNotFound(r.end(ctx, cr, l, pod))
		if err == nil {
			continue
		}
		if len(errs) < text.NamesListed {
			errs = append(errs, fmt.Errorf("evict Pod %s/%s: %w", pod.Namespace, pod.Name, err))
		}
		if apierrors.IsTooManyRequests(err) {
			blocked = append(blocked, pod.Namespace+"/"+pod.Name)
		} else {
			failed = append(failed, fmt.Sprintf("%s/%s: %s", pod.Namespace, pod.Name, sanitize.Line(err.Error(), errorLimit)))
		}
	}
	if err := r.Report(ctx, cr, v1alpha1.ReasonDeregistering, evicting(l.pods, blocked, failed)); err != nil {
		return err
	}
	if len(errs) > 0 {
		return fmt.Errorf("evict the Pods of member %s: %w", cr.Name, errors.Join(errs...)) // retried with backoff
	}
	return nil
}

// evicting reports which Pods the deregistration waits for. failed also contains the causes. It is a
// pure function.
func evicting(pods []corev1.Pod, blocked, failed []string) string {
	var parts []string
	if len(blocked) > 0 {
		parts = append(parts, fmt.Sprintf("PodDisruptionBudgets block the eviction of %s (%s)", text.Count(len(blocked), "Pod"), firstNames(blocked)))
	}
	if len(failed) > 0 {
		parts = append(parts, fmt.Sprintf("the eviction of %s fails (%s)", text.Count(len(failed), "Pod"), firstNames(failed)))
	}
	if len(parts) > 0 {
		message := strings.Join(parts, ", and ") + ". Xylem retries"
		if len(blocked) > 0 {
			message += ". Add replicas elsewhere, or change the budgets"
		}
		return message
	}
	return fmt.Sprintf("waiting for %s to end in the member (%s)", text.Count(len(pods), "Pod"), firstObjects(pods))
}

// end evicts a Pod. In a lost member, it also completes the deletion, after the final status, as
// leaf_pod and root_pod would.
func (r *Leaver) end(ctx context.Context, cr *v1alpha1.ClusterRegistration, l *leaving, pod *corev1.Pod) error {
	switch {
	case pod.DeletionTimestamp == nil:
		return r.evictPod(ctx, cr, l, pod)
	case !l.lost():
		return nil
	}
	if err := r.force(ctx, cr, pod, mayRun(pod)); err != nil {
		return err
	}
	if !podstatus.Finished(pod) {
		if err := r.fail(ctx, cr, pod); err != nil {
			return err
		}
	}
	return r.writer(cr).FinishPod(ctx, pod)
}

func mayRun(pod *corev1.Pod) string {
	return fmt.Sprintf("Pod \"%s/%s\" is deleted in the host, but may still run in the member", pod.Namespace, pod.Name)
}

// evictPod evicts a Pod. In a lost member, it fails a Pod that cannot be evicted and evicts it again,
// because disruption budgets do not apply to finished Pods. Xylem's account may not delete a Pod
// before somebody else does (config/policy/manager-account.yaml).
func (r *Leaver) evictPod(ctx context.Context, cr *v1alpha1.ClusterRegistration, l *leaving, pod *corev1.Pod) error {
	err := r.createEviction(ctx, pod)
	if client.IgnoreNotFound(err) != nil && l.lost() && !podstatus.Finished(pod) {
		// A finished Pod is deleted at once, so this is the last moment to record it.
		if err := r.force(ctx, cr, pod, mayRun(pod)); err != nil {
			return err
		}
		if err := r.fail(ctx, cr, pod); err != nil {
			return err
		}
		err = r.createEviction(ctx, pod)
	}
	if err == nil {
		r.eventEvicted(cr, pod)
	}
	return err
}

func (r *Leaver) createEviction(ctx context.Context, pod *corev1.Pod) error {
	return r.Client.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
	})
}

// fail sets a Pod of a lost member to Failed, as leaf_pod would.
func (r *Leaver) fail(ctx context.Context, cr *v1alpha1.ClusterRegistration, pod *corev1.Pod) error {
	failed := podstatus.Failed(pod, v1alpha1.ReasonMemberLeaving, fmt.Sprintf(
		"an admin forced the deregistration of unreachable member %q, in which the Pod may still run", cr.Name))
	return r.writer(cr).ApplyStatus(ctx, leafPod, pod, podstatus.Apply(pod, podstatus.Dated(failed, metav1.NewTime(r.Clock.Now()))))
}
