package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/config"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/test/fault/rig"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// tokens returns the scenarios about the tokens of Pods for the host's API server.
func tokens() []Scenario {
	return []Scenario{{
		Name: "token", About: "a Pod gets a token for the host's API server, is deleted and created again: no token stays without its Pod, and no running Pod loses its token",
		Setup: do((*World).giveTokens),
		Act:   do((*World).replaceTokenUser),
		Settled: func(ctx context.Context, w *World) error {
			return errors.Join(w.upAndBound(ctx), w.hasOwnToken(ctx), w.keptTokens())
		},
		Restore: do((*World).giveNoTokens),
	}}
}

// tokenIdentity returns the objects that let the manager act as the first member's node.
func tokenIdentity() ([]client.Object, error) {
	role, binding, err := config.NodeIdentity("fault", []string{rig.NodeOne}, v1alpha1.DefaultNamespace, "xylem-controller-manager")
	if err != nil {
		return nil, fmt.Errorf("read the manifest of the node identity: %w", err)
	}
	return []client.Object{role, binding}, nil
}

// setAPIServer changes how the first member's Pods reach the host's API server.
func (w *World) setAPIServer(ctx context.Context, body string) error {
	cr := registration()
	cr.Name = rig.One
	if err := patch(ctx, w.Host, cr, `{"spec":{"apiServer":`+body+`}}`); err != nil {
		return err
	}
	return w.AwaitReady(ctx, rig.One)
}

func (w *World) giveTokens(ctx context.Context) error {
	identity, err := tokenIdentity()
	if err != nil {
		return err
	}
	for _, obj := range identity {
		if err := client.IgnoreAlreadyExists(w.Host.API.Create(ctx, obj)); err != nil {
			return fmt.Errorf("create %T %s: %w", obj, obj.GetName(), err)
		}
	}
	return w.setAPIServer(ctx, `{"url":"https://api.example:6443"}`)
}

func (w *World) giveNoTokens(ctx context.Context) error {
	identity, err := tokenIdentity()
	if err != nil {
		return err
	}
	for _, obj := range identity {
		if err := client.IgnoreNotFound(w.Host.API.Delete(ctx, obj)); err != nil {
			return fmt.Errorf("delete %T %s: %w", obj, obj.GetName(), err)
		}
	}
	return w.setAPIServer(ctx, "null")
}

// replaceTokenUser creates the Pod, deletes it once it has a token, and creates it again.
func (w *World) replaceTokenUser(ctx context.Context) error {
	if err := w.pair(ctx, rig.ClassDelete); err != nil {
		return err
	}
	if err := harness.Await(ctx, "the Pod to run with a token", func(ctx context.Context) error {
		return errors.Join(w.running(ctx, app), w.hasOwnToken(ctx))
	}); err != nil {
		return err
	}
	if err := w.deleteApp(ctx); err != nil {
		return err
	}
	if err := harness.Await(ctx, "the Pod's deletion", func(ctx context.Context) error { return gone[corev1.Pod](ctx, w, w.Host, app) }); err != nil {
		return err
	}
	return w.createApp(ctx, rig.NodeOne)
}

// hasOwnToken returns nil once the member has the token of the current Pod, and no other token.
func (w *World) hasOwnToken(ctx context.Context) error {
	pod, err := get[corev1.Pod](ctx, w, w.Host, app)
	if err != nil {
		return err
	}
	var secrets corev1.SecretList
	if err := w.Member(rig.One).API.List(ctx, &secrets, client.InNamespace(w.Namespace)); err != nil {
		return fmt.Errorf("list Secrets: %w", err)
	}
	var token string
	for i := range secrets.Items {
		if owner, is := mirror.PodOfTokenSecret(secrets.Items[i].Name); is && owner != pod.UID {
			return fmt.Errorf("the member has the tokens of Pod %s, which is gone", owner)
		} else if is {
			token = string(secrets.Items[i].Data[podspec.TokensOfPod(pod)[0].Key])
		}
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := w.Host.API.Create(ctx, review); err != nil {
		return fmt.Errorf("review the token: %w", err)
	}
	if bound := review.Status.User.Extra["authentication.kubernetes.io/pod-uid"]; len(bound) != 1 || types.UID(bound[0]) != pod.UID {
		return fmt.Errorf("the token in the member is bound to %v, want Pod %s: %s", bound, pod.UID, review.Status.Error)
	}
	return nil
}

// tokenLag is how much later than the end of a Pod the end of its token may be observed, or earlier.
const tokenLag = 2 * time.Second

// keptTokens returns nil if no tokens disappeared while their leaf Pod ran.
func (w *World) keptTokens() error {
	seen := w.Witness.Seen()
	for _, s := range seen {
		owner, is := mirror.PodOfTokenSecret(s.Object.GetName())
		if _, secret := s.Object.(*corev1.Secret); !secret || !is || !s.Gone || s.Object.GetNamespace() != w.Namespace {
			continue
		}
		var last *corev1.Pod
		for _, other := range seen {
			pod, ok := other.Object.(*corev1.Pod)
			if !ok || other.Cluster != s.Cluster || types.UID(pod.Annotations[v1alpha1.AnnotationRootUID]) != owner || other.At.After(s.At.Add(tokenLag)) {
				continue
			}
			if last = pod; other.Gone {
				last = nil
			}
		}
		if last != nil && last.DeletionTimestamp == nil && last.Status.Phase == corev1.PodRunning {
			return fmt.Errorf("the tokens of Pod %s were deleted while its leaf Pod %s ran", owner, last.UID)
		}
	}
	return nil
}
