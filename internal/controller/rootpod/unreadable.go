package rootpod

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/report"
)

// reportUnreadableReference checks whether err means that the manager lacks the permission to read an object
// that the Pod refers to, and if so, reports that on the Pod. It returns the error for a retry with
// backoff, because no watch shows when an admin grants the permission.
func (r *reconciler) reportUnreadableReference(ctx context.Context, root *corev1.Pod, err error) error {
	problem := unreadableReference(root, err)
	if problem != nil && r.SecretsAsNode {
		problem = report.NodeIdentityRefusal(r.Member, "the Secrets of Pods", err)
	}
	return errors.Join(err, r.reportUnpushed(ctx, root, problem))
}

// unreadableReference returns the problem of a Pod that refers to a ConfigMap or Secret that the manager is
// not allowed to get in the host. It returns nil for other errors.
func unreadableReference(root *corev1.Pod, err error) *mirror.Refusal {
	var status apierrors.APIStatus
	if root == nil || !apierrors.IsForbidden(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	// Members' objects are read from caches, so the error is from the host.
	kind, ok := map[string]string{"configmaps": "ConfigMap", "secrets": "Secret"}[status.Status().Details.Kind]
	if !ok {
		return nil
	}
	return mirror.NewRefusal(v1alpha1.ReasonReferenceForbidden, "Xylem does not push the Pod: the manager does not have the permission to get %s %q in namespace %q of the host. Remove the reference, or ask the host's admin to add the namespace to rbac.secretNamespaces of chart xylem",
		kind, status.Status().Details.Name, root.Namespace)
}
