package rootconfig

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/report"
)

// authorizerLag is how long the host's node authorizer may take to learn that a Pod is bound. Until then, it refuses the
// Pod's tokens.
const authorizerLag = 10 * time.Second

// podTokens requests the tokens of host Pods as the virtual node. In place of the root Secret of a copy, it
// returns one that contains a Pod's tokens; mirror.TokensRoot is its name.
type podTokens struct {
	*member.Link
	Options
}

// podWithTokens returns the Pod with a UID, if it needs tokens.
func podWithTokens(ctx context.Context, link *member.Link, namespace string, uid types.UID) ([]*corev1.Pod, error) {
	var pods corev1.PodList
	if err := link.Host.List(ctx, &pods, client.InNamespace(namespace), index.ReadOnly); err != nil {
		return nil, fmt.Errorf("list the Pods in namespace %s: %w", namespace, err)
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.UID == uid && needsTokens(pod, link.Member) {
			return []*corev1.Pod{pod}, nil
		}
	}
	return nil, nil
}

// needsTokens reports whether a Pod is bound to the member's node and projects tokens, and Pods in this member get them.
func needsTokens(pod *corev1.Pod, m mirror.Member) bool {
	return m.APIServer != nil && podUseOf(pod, m) == copiesUsed && len(podspec.TokensOfPod(pod)) > 0
}

// requestOfPod returns the request for a Pod's tokens. It returns none if the Pod needs none, or already has them.
func (r *reconciler) requestOfPod(pod *corev1.Pod) []reconcile.Request {
	key := types.NamespacedName{Namespace: pod.Namespace, Name: mirror.TokensRoot(pod.UID)}
	if r.APIServer == nil || pod.Spec.NodeName != r.NodeName || len(podspec.TokensOfPod(pod)) == 0 {
		return nil
	}
	if podUseOf(pod, r.Member) == copiesUsed && r.tokens.reading(key).users.Has(pod.UID) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

func (r podTokens) readRoot(ctx context.Context, o *observed) (*corev1.Secret, bool, time.Duration, error) {
	pod := o.users[0]
	root := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.key.Namespace, Name: o.key.Name, UID: pod.UID},
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{podspec.CAKey: r.APIServer.CABundle},
	}
	shortest := time.Duration(0)
	for _, token := range podspec.TokensOfPod(pod) {
		issued, err := r.NodeIdentity.RequestToken(ctx, actor, pod, token)
		if err != nil {
			return nil, false, 0, errors.Join(err, r.reportMissingToken(ctx, pod, r.tokenProblem(pod, err)))
		}
		root.Data[token.Key] = []byte(issued.Token)
		if lifetime := time.Duration(token.ExpirationSeconds) * time.Second; shortest == 0 || lifetime < shortest {
			shortest = lifetime
		}
	}
	return root, true, time.Duration(float64(shortest) * r.RenewAfter), r.reportToken(ctx, pod)
}

// tokenProblem returns what to report on a Pod whose token the host does not issue, or nil if a retry may succeed.
func (r podTokens) tokenProblem(pod *corev1.Pod, err error) *mirror.Refusal {
	problem := report.TokenRefusal(r.Member, pod.Spec.ServiceAccountName, err)
	bound := podstatus.FindPodCondition(pod.Status.Conditions, corev1.PodScheduled)
	if problem != nil && problem.Reason == v1alpha1.ReasonTokenRefused && bound != nil && r.Clock.Since(bound.LastTransitionTime.Time) < authorizerLag {
		return nil
	}
	return problem
}

// reportMissingToken reports a problem as a condition and, if it is new, as an event.
func (r podTokens) reportMissingToken(ctx context.Context, pod *corev1.Pod, problem *mirror.Refusal) error {
	if problem == nil {
		return nil
	}
	if shown := report.PodConditionProblem(pod, v1alpha1.PodAPIAccess); shown != nil && *shown == *problem {
		return nil
	}
	r.Recorder.Eventf(pod, nil, corev1.EventTypeWarning, problem.Reason, "RequestToken", "%s", problem.Message)
	return r.HostWriter.ApplyStatus(ctx, actor, pod, report.PodConditionApplyBody(pod, v1alpha1.PodAPIAccess, corev1.ConditionFalse, problem.Reason, problem.Message, r.Clock.Now()))
}

// reportToken ends a problem that the Pod shows.
func (r podTokens) reportToken(ctx context.Context, pod *corev1.Pod) error {
	if report.PodConditionProblem(pod, v1alpha1.PodAPIAccess) == nil {
		return nil
	}
	return r.HostWriter.ApplyStatus(ctx, actor, pod, report.PodConditionApplyBody(pod, v1alpha1.PodAPIAccess, corev1.ConditionTrue, v1alpha1.ReasonPushed,
		fmt.Sprintf("member %q has a current token", r.Registration), r.Clock.Now()))
}
