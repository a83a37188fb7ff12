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
	return errors.Join(err, r.reportUnpushed(ctx, root, r.unreadableProblem(root, err)))
}

// unreadableProblem returns the problem of a Pod that refers to an object that the manager or, if it reads Secrets as the virtual
// node, that node is not allowed to get. It returns nil for other errors.
func (r *reconciler) unreadableProblem(root *corev1.Pod, err error) *mirror.Refusal {
	if root == nil || !r.SecretsAsNode || forbiddenResource(err) == "configmaps" {
		return unreadableReference(root, err)
	}
	problem := report.SecretsRefusal(r.Member, root.Spec.NodeName, err)
	if problem != nil && problem.Reason != v1alpha1.ReasonNodeIdentityMissing && report.AwaitsAuthorizer(root, r.Clock.Now()) {
		return nil
	}
	return problem
}

// unreadableReference returns the problem of a Pod that refers to a ConfigMap or Secret that the manager is
// not allowed to get in the host. It returns nil for other errors.
func unreadableReference(root *corev1.Pod, err error) *mirror.Refusal {
	// Members' objects are read from caches, so the error is from the host.
	kind, ok := map[string]string{"configmaps": "ConfigMap", "secrets": "Secret"}[forbiddenResource(err)]
	var status apierrors.APIStatus
	if root == nil || !ok || !errors.As(err, &status) {
		return nil
	}
	return mirror.NewRefusal(v1alpha1.ReasonReferenceForbidden, "Xylem does not push the Pod: the manager does not have the permission to get %s %q in namespace %q of the host. Remove the reference, or ask the host's admin to add the namespace to rbac.secretNamespaces of chart xylem",
		kind, status.Status().Details.Name, root.Namespace)
}

// forbiddenResource returns the resource to which the host denied access, or "".
func forbiddenResource(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return ""
	}
	return status.Status().Details.Kind
}
