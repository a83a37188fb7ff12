package rootpod

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/controller/rootpod/lifecycle"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/refs"
	"github.com/xylem-io/xylem/internal/mirror/report"
)

// The verb and subresource that a member must allow for ephemeral containers.
const (
	debugVerb        = "patch"
	debugSubresource = "ephemeralcontainers"
)

// addDebugContainers adds the ephemeral containers one by one, so that a rejected one does not block the
// next. It reports a rejection on the root. No watch shows when an admin grants the permission, so
// the request is retried with backoff.
func (r *reconciler) addDebugContainers(ctx context.Context, o lifecycle.Observed) error {
	namespace, err := index.FindObject[corev1.Namespace](ctx, r.Host, index.ClusterScopedKey(o.Root.Namespace))
	if err != nil || namespace == nil {
		return err // the namespace's event enqueues the Pod
	}
	copies := mirror.ConfigCopies{HostID: r.HostID, NamespaceUID: namespace.UID}
	point := func(pod *corev1.Pod) { refs.PointAtCopies(copies, pod) }
	var refused error
	leaf := o.Leaf
	for _, name := range podspec.MissingDebugContainers(o.Root, o.Leaf) {
		after, err := podspec.AddDebugContainer(o.Root, leaf, name, point)
		if refusal := (&mirror.Refusal{}); errors.As(err, &refusal) {
			r.reportDebugContainer(o.Root, name, refusal.Message+". Add another one without that field")
			continue // do not retry, because ephemeral containers are immutable
		}
		if err := r.MemberWriter.AddEphemeralContainers(ctx, actor, leaf, after); err != nil {
			why := r.debugContainerRejection(ctx, o.Root.Namespace, err)
			if why == "" {
				return err
			}
			r.reportDebugContainer(o.Root, name, why)
			refused = err
			continue
		}
		leaf = after
	}
	return refused
}

// debugContainerRejection returns why the member rejects an ephemeral container, or an empty string for
// other errors.
func (r *reconciler) debugContainerRejection(ctx context.Context, namespace string, err error) string {
	if apierrors.IsForbidden(err) {
		if allowed, err := r.Streams.HasPermission(ctx, debugVerb, debugSubresource, namespace); err == nil && !allowed {
			return fmt.Sprintf("Xylem's account in member %q lacks the verb %q on pods/%s. An admin of the member can grant it with kubectl xylem register %s --member-kubeconfig FILE --with-debug, or with the value debug.enabled=true of the chart xylem-member",
				r.Registration, debugVerb, debugSubresource, r.Registration)
		}
	}
	problem := report.MemberWriteRefusal(r.Registration, "add", "it", err)
	if problem == nil {
		return ""
	}
	if apierrors.IsForbidden(err) { // usually Pod Security, which rejects kubectl's default profile
		return problem.Message + ". Add another one with kubectl debug --profile=baseline or --profile=restricted"
	}
	return problem.Message
}

// reportDebugContainer reports why an ephemeral container does not run.
func (r *reconciler) reportDebugContainer(root *corev1.Pod, name, why string) {
	if due, _ := r.news.EventDue(string(root.UID)+"/"+name, why); !due {
		return
	}
	r.Recorder.Eventf(root, nil, corev1.EventTypeWarning, v1alpha1.ReasonEphemeralContainersNotRun, "Debug",
		"ephemeral container %q does not run: %s", name, why)
}
