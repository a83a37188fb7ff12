package rootpod

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xylem-io/xylem/api/v1alpha1"
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
