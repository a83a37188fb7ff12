package guarded

import (
	"context"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// accepting accepts each write.
type accepting struct{ client.Client }

func (accepting) Create(context.Context, client.Object, ...client.CreateOption) error { return nil }

func (accepting) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return nil
}

// No write may make a leaf too large, because a host's tenants choose its labels and ephemeral
// containers even while it runs. An object that is too large already can still shrink.
func TestLeavesStaySmall(t *testing.T) {
	labeled := func(n int) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: meta("web", stamped)}
		for i := range n {
			pod.Labels[strconv.Itoa(i)] = ""
		}
		return pod
	}
	debugged := &corev1.Pod{ObjectMeta: meta("web", stamped), Spec: corev1.PodSpec{EphemeralContainers: make([]corev1.EphemeralContainer, 50_000)}}
	largeClaim := claim(stamped, func(m *metav1.ObjectMeta) { m.Labels = labeled(50_000).Labels })
	l := NewMemberWriter(accepting{}, hostID, "cluster38", HostOnlyGuard{})
	for name, tc := range map[string]struct {
		write   func(context.Context) error
		refused bool
	}{
		"create an ordinary Pod":         {func(ctx context.Context) error { return l.CreateStamped(ctx, actor, labeled(10)) }, false},
		"create a large Pod":             {func(ctx context.Context) error { return l.CreateStamped(ctx, actor, labeled(50_000)) }, true},
		"create a large claim":           {func(ctx context.Context) error { return l.CreateStamped(ctx, actor, largeClaim) }, true},
		"add labels":                     {func(ctx context.Context) error { return l.PatchStamped(ctx, actor, labeled(10), labeled(20)) }, false},
		"add very many labels":           {func(ctx context.Context) error { return l.PatchStamped(ctx, actor, labeled(10), labeled(50_000)) }, true},
		"remove labels of a large Pod":   {func(ctx context.Context) error { return l.PatchStamped(ctx, actor, labeled(60_000), labeled(50_000)) }, false},
		"add very many debug containers": {func(ctx context.Context) error { return l.AddEphemeralContainers(ctx, actor, labeled(10), debugged) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.write(t.Context())
			if refused := apierrors.IsRequestEntityTooLargeError(err); refused != tc.refused || !refused && err != nil {
				t.Errorf("error is %v, want a refusal: %t", err, tc.refused)
			}
		})
	}
}
