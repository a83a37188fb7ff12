package rootconfig

import (
	"context"
	"fmt"
	"sync"
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
	"github.com/xylem-io/xylem/internal/mirror/refs"
	"github.com/xylem-io/xylem/internal/mirror/report"
)

// refusedIntervals is how many of the link's recheck intervals Xylem waits before it requests refused tokens again.
const refusedIntervals = 4

// podTokens requests the tokens of host Pods as the virtual node. In place of the root Secret of a copy, it
// returns one that contains a Pod's tokens; mirror.TokenSecretName is its name.
type podTokens struct {
	*member.Link
	Options

	// podNames has the name of each leaf Pod with tokens, by the Secret's namespace and name.
	podNames sync.Map
}

// findLeaf returns the leaf Pod that refers to a Secret with its tokens, or nil.
func (r *podTokens) findLeaf(ctx context.Context, key types.NamespacedName) (*corev1.Pod, error) {
	if name, known := r.podNames.Load(key); known {
		leaf, err := index.FindObject[corev1.Pod](ctx, r.Cache, types.NamespacedName{Namespace: key.Namespace, Name: fmt.Sprint(name)})
		if err != nil {
			return nil, err
		}
		if leaf != nil && refersToTokens(leaf, key.Name) {
			return leaf, nil
		}
		r.podNames.Delete(key)
		return nil, nil
	}
	var pods corev1.PodList // after a restart, until the event of the leaf Pod
	if err := r.Cache.List(ctx, &pods, client.InNamespace(key.Namespace), index.ReadOnly); err != nil {
		return nil, fmt.Errorf("list the leaf Pods in namespace %s: %w", key.Namespace, err)
	}
	for i := range pods.Items {
		if refersToTokens(&pods.Items[i], key.Name) {
			return &pods.Items[i], nil
		}
	}
	return nil, nil
}

// refersToTokens reports whether a Secret has the name of a leaf Pod's tokens, and the Pod refers to it.
func refersToTokens(leaf *corev1.Pod, secret string) bool {
	return mirror.TokenSecretName(mirror.StampedRootUID(leaf)) == secret && podRefersTo(leaf, refs.KindSecret, secret)
}

// findUsers returns the root Pod that needs the tokens in a Secret, if its leaf refers to the Secret.
func (r *podTokens) findUsers(ctx context.Context, key types.NamespacedName) ([]*corev1.Pod, error) {
	leaf, err := r.findLeaf(ctx, key)
	if leaf == nil {
		return nil, err
	}
	root, err := index.FindObject[corev1.Pod](ctx, r.Host, client.ObjectKeyFromObject(leaf))
	if root == nil || mirror.TokenSecretName(root.UID) != key.Name || !needsTokens(root, r.Member) {
		return nil, err
	}
	if here, err := r.HasPod(ctx, root); err != nil || !here {
		return nil, err
	}
	return []*corev1.Pod{root}, nil
}

// needsTokens reports whether a Pod is bound to the member's node and projects tokens, and Pods in this member get them. A Pod
// that is being deleted still does.
func needsTokens(root *corev1.Pod, m mirror.Member) bool {
	return m.APIServer != nil && m.HasNode(root.Spec.NodeName) && !podstatus.IsPodFinished(root) && len(podspec.TokensOfPod(root)) > 0
}

// requestOfPod returns the request for a root Pod's tokens. It returns none if the Pod needs none, or they were already
// requested.
func (r *reconciler) requestOfPod(root *corev1.Pod) []reconcile.Request {
	if r.APIServer == nil || !r.HasNode(root.Spec.NodeName) || len(podspec.TokensOfPod(root)) == 0 {
		return nil
	}
	key := types.NamespacedName{Namespace: root.Namespace, Name: mirror.TokenSecretName(root.UID)}
	if needsTokens(root, r.Member) && r.tokens.reading(key).users.Has(root.UID) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

func (r *podTokens) readRoot(ctx context.Context, o *observed) (*corev1.Secret, bool, time.Duration, error) {
	pod := o.users[0]
	root := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: o.key.Namespace, Name: o.key.Name, UID: pod.UID}, Data: map[string][]byte{podspec.CAKey: r.APIServer.CABundle}}
	shortest := time.Duration(0)
	for _, token := range podspec.TokensOfPod(pod) {
		requested := r.Clock.Now()
		issued, err := r.NodeIdentity.RequestToken(ctx, actor, pod, token)
		if err != nil {
			if o.problem = r.tokenProblem(pod, err); o.problem != nil {
				return nil, false, refusedIntervals * r.RecheckInterval, nil
			}
			return nil, false, 0, err
		}
		root.Data[token.Key] = []byte(issued.Token)
		lifetime := time.Duration(token.ExpirationSeconds) * time.Second
		if actual := issued.ExpirationTimestamp.Sub(requested); actual > 0 {
			lifetime = min(lifetime, actual)
		}
		if shortest == 0 || lifetime < shortest {
			shortest = lifetime
		}
	}
	return root, true, time.Duration(float64(shortest) * r.RenewAfter), nil
}

// tokenProblem returns what to report on a Pod whose token the host does not issue, or nil if a retry may succeed.
func (r *podTokens) tokenProblem(pod *corev1.Pod, err error) *mirror.Refusal {
	problem := report.TokenRefusal(r.Member, pod.Spec.NodeName, pod.Spec.ServiceAccountName, err)
	if problem != nil && problem.Reason == v1alpha1.ReasonTokenRefused && report.AwaitsAuthorizer(pod, r.Clock.Now()) {
		return nil
	}
	return problem
}

// reportMissing reports why a Pod's tokens are missing, or are not renewed, as a condition and, if it is new, as an event.
func (r *podTokens) reportMissing(ctx context.Context, pod *corev1.Pod, problem *mirror.Refusal) error {
	if shown := report.PodConditionProblem(pod, v1alpha1.PodAPIAccess); shown != nil && *shown == *problem {
		return nil
	}
	r.Recorder.Eventf(pod, nil, corev1.EventTypeWarning, problem.Reason, "RequestToken", "%s", problem.Message)
	return r.HostWriter.ApplyStatus(ctx, actor, pod, report.PodConditionApplyBody(pod, v1alpha1.PodAPIAccess, corev1.ConditionFalse, problem.Reason, problem.Message, r.Clock.Now()))
}

// reportPresent ends a problem that the Pod shows.
func (r *podTokens) reportPresent(ctx context.Context, pod *corev1.Pod) error {
	if report.PodConditionProblem(pod, v1alpha1.PodAPIAccess) == nil {
		return nil
	}
	return r.HostWriter.ApplyStatus(ctx, actor, pod, report.PodConditionApplyBody(pod, v1alpha1.PodAPIAccess, corev1.ConditionTrue, v1alpha1.ReasonPushed,
		fmt.Sprintf("member %q has current tokens", r.Registration), r.Clock.Now()))
}
