package rootpod

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
)

func TestUnreadableReference(t *testing.T) {
	forbidden := func(resource string) error {
		return fmt.Errorf("read it: %w", apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "tls", errors.New("no")))
	}
	problem := func(kind string) *mirror.Refusal {
		return &mirror.Refusal{Reason: v1alpha1.ReasonReferenceForbidden, Message: fmt.Sprintf(
			"Xylem does not push the Pod: the manager does not have the permission to get %s \"tls\" in namespace \"shop\" of the host. "+
				"Remove the reference, or ask the host's admin to add the namespace to rbac.secretNamespaces of chart xylem", kind)}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	for name, tc := range map[string]struct {
		root *corev1.Pod
		err  error
		want *mirror.Refusal
	}{
		"a Secret":              {pod, forbidden("secrets"), problem("Secret")},
		"a ConfigMap":           {pod, forbidden("configmaps"), problem("ConfigMap")},
		"another kind":          {pod, forbidden("pods"), nil},
		"another error":         {pod, errors.New("timeout"), nil},
		"the Pod was not found": {nil, forbidden("secrets"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, unreadableReference(tc.root, tc.err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// With --secrets-access=Node, the Pod shows whether the manager may not act as the node, or the node may not get the Secret.
func TestUnreadableAsNode(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	forbidden := func(resource, user string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "tls", fmt.Errorf("User %q cannot do it", user))
	}
	for name, tc := range map[string]struct {
		err  error
		age  time.Duration
		want string
	}{
		"no role of any registration":               {forbidden("secrets", "manager"), 0, v1alpha1.ReasonNodeIdentityMissing},
		"only another registration has a role":      {forbidden("nodes", "manager"), 0, v1alpha1.ReasonNodeIdentityMissing},
		"an older host":                             {forbidden("users", "manager"), 0, v1alpha1.ReasonNodeIdentityMissing},
		"a ConfigMap outside rbac.secretNamespaces": {forbidden("configmaps", "manager"), 0, v1alpha1.ReasonReferenceForbidden},
		"the authorizer does not know the Pod yet":  {forbidden("secrets", "system:node:kosmos-cluster38"), time.Second, ""},
		"the authorizer never allows it":            {forbidden("secrets", "system:node:kosmos-cluster38"), time.Minute, v1alpha1.ReasonReferenceForbidden},
		"another error":                             {errors.New("timeout"), time.Minute, ""},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", CreationTimestamp: metav1.NewTime(now.Add(-tc.age))}}
		r := &reconciler{Link: &member.Link{Member: here, SecretsAsNode: true, Clock: clocktesting.NewFakePassiveClock(now)}}
		got := ""
		if problem := r.unreadableProblem(pod, tc.err); problem != nil {
			got = problem.Reason
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
