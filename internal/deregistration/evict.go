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
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/wording"
)

// leafPodActor is the owner of Pod statuses. The leaf_pod controller of a lost member does not run.
const leafPodActor = guarded.Actor("leaf-pod")

// maxErrorBytes is the maximum size of an API server's error in a message, in bytes.
const maxErrorBytes = 300

// stepEvictPods evicts the Pods, so that disruption budgets apply. The member's root_pod controller
// completes their deletion. If an admin forces the deregistration of a lost member, evict deletes
// the Pods immediately. A Pod that cannot be evicted does not keep the others.
func (r *Deregisterer) evictPods(ctx context.Context, cr *v1alpha1.ClusterRegistration, l *remainingObjects) error {
	var blocked, failed []string
	var errs []error
	for i := range l.pods {
		pod := &l.pods[i]
		err := client.IgnoreNotFound(r.evictOrFinishPod(ctx, cr, l, pod))
		if err == nil {
			continue
		}
		if len(errs) < wording.NamesListed {
			errs = append(errs, fmt.Errorf("evict Pod %s/%s: %w", pod.Namespace, pod.Name, err))
		}
		if apierrors.IsTooManyRequests(err) {
			blocked = append(blocked, pod.Namespace+"/"+pod.Name)
		} else {
			failed = append(failed, fmt.Sprintf("%s/%s: %s", pod.Namespace, pod.Name, mirror.PlainLine(err.Error(), maxErrorBytes)))
		}
	}
	if err := r.ReportNotReady(ctx, cr, v1alpha1.ReasonDeregistering, describeEviction(l.pods, blocked, failed)); err != nil {
		return err
	}
	if len(errs) > 0 {
		return fmt.Errorf("evict the Pods of member %s: %w", cr.Name, errors.Join(errs...)) // retried with backoff
	}
	return nil
}

// describeEviction reports which Pods the deregistration waits for. failed also contains the causes. It is a
// pure function.
func describeEviction(pods []corev1.Pod, blocked, failed []string) string {
	var parts []string
	if len(blocked) > 0 {
		parts = append(parts, fmt.Sprintf("PodDisruptionBudgets block the eviction of %s (%s)", wording.CountNoun(len(blocked), "Pod"), firstNames(blocked)))
	}
	if len(failed) > 0 {
		parts = append(parts, fmt.Sprintf("the eviction of %s fails (%s)", wording.CountNoun(len(failed), "Pod"), firstNames(failed)))
	}
	if len(parts) > 0 {
		message := strings.Join(parts, ", and ") + ". Xylem retries"
		if len(blocked) > 0 {
			message += ". Add replicas elsewhere, or change the budgets"
		}
		return message
	}
	return fmt.Sprintf("waiting for %s to end in the member (%s)", wording.CountNoun(len(pods), "Pod"), firstObjects(pods))
}

// evictOrFinishPod evicts a Pod. In a lost member, it also completes the deletion, after the final status, as
// leaf_pod and root_pod would.
func (r *Deregisterer) evictOrFinishPod(ctx context.Context, cr *v1alpha1.ClusterRegistration, l *remainingObjects, pod *corev1.Pod) error {
	switch {
	case pod.DeletionTimestamp == nil:
		return r.evictPod(ctx, cr, l, pod)
	case !l.isForcedAndUnreachable():
		return nil
	}
	if err := r.recordForcedRelease(ctx, cr, pod, describeMayStillRun(pod)); err != nil {
		return err
	}
	if !podstatus.IsPodFinished(pod) {
		if err := r.failUnreachablePod(ctx, cr, pod); err != nil {
			return err
		}
	}
	return r.hostWriter(cr).FinishPodDeletion(ctx, pod)
}

func describeMayStillRun(pod *corev1.Pod) string {
	return fmt.Sprintf("Pod \"%s/%s\" is deleted in the host, but may still run in the member", pod.Namespace, pod.Name)
}

// evictPod evicts a Pod. In a lost member, it fails a Pod that cannot be evicted and evicts it again,
// because disruption budgets do not apply to finished Pods. Xylem's account may not delete a Pod
// before somebody else does (config/policy/manager-account.yaml).
func (r *Deregisterer) evictPod(ctx context.Context, cr *v1alpha1.ClusterRegistration, l *remainingObjects, pod *corev1.Pod) error {
	err := r.createEviction(ctx, pod)
	if client.IgnoreNotFound(err) != nil && l.isForcedAndUnreachable() && !podstatus.IsPodFinished(pod) {
		// A finished Pod is deleted at once, so this is the last moment to record it.
		if err := r.recordForcedRelease(ctx, cr, pod, describeMayStillRun(pod)); err != nil {
			return err
		}
		if err := r.failUnreachablePod(ctx, cr, pod); err != nil {
			return err
		}
		err = r.createEviction(ctx, pod)
	}
	if err == nil {
		r.emitPodEvicted(cr, pod)
	}
	return err
}

func (r *Deregisterer) createEviction(ctx context.Context, pod *corev1.Pod) error {
	return r.Client.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
	})
}

// failUnreachablePod sets a Pod of a lost member to Failed, as leaf_pod would.
func (r *Deregisterer) failUnreachablePod(ctx context.Context, cr *v1alpha1.ClusterRegistration, pod *corev1.Pod) error {
	failed := podstatus.FailedPodStatus(pod, v1alpha1.ReasonMemberLeaving, fmt.Sprintf(
		"an admin forced the deregistration of unreachable member %q, in which the Pod may still run", cr.Name))
	return r.hostWriter(cr).ApplyStatus(ctx, leafPodActor, pod, podstatus.PodStatusApplyBody(pod, podstatus.WithTransitionTimes(failed, metav1.NewTime(r.Clock.Now()))))
}
