package rootconfig

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/refs"
	"github.com/xylem-io/xylem/internal/mirror/report"
)

// rootReader reads roots.
type rootReader[T client.Object] interface {
	// readRoot reads the root live. pause is the time until the next read, before jitter.
	readRoot(ctx context.Context, o *observed) (root T, found bool, pause time.Duration, err error)
}

// hostRoots reads ConfigMaps or Secrets.
type hostRoots[T client.Object] struct {
	*member.Link
	kind configKind[T]
}

func (r hostRoots[T]) readRoot(ctx context.Context, o *observed) (T, bool, time.Duration, error) {
	root := r.kind.empty()
	reader, node, err := r.readerFor(o)
	if err != nil {
		return root, false, 0, err
	}
	found, err := index.GetIfExists(ctx, reader, o.key, root)
	if err != nil {
		if readsAsNode(r.Link, r.kind.reference) {
			r.reportUnreadable(o, node, err)
		}
		return root, false, 0, fmt.Errorf("read %s %s: %w", r.kind.reference, o.key, err)
	}
	if !found && readsAsNode(r.Link, r.kind.reference) { // root_pod could not check this before it created the leaf
		o.refusal = missingRefusal(o)
	}
	return root, found, readInterval, nil
}

// readerFor returns a live reader of the host's objects. It acts as the node of the Pod that was bound first, because the node
// authorizer may not know the other Pods yet.
func (r hostRoots[T]) readerFor(o *observed) (reader client.Reader, node string, err error) {
	if r.kind.reference != refs.KindSecret {
		return r.HostLive, "", nil
	}
	if len(o.users) > 0 {
		node = slices.MinFunc(o.users, func(a, b *corev1.Pod) int { return report.BoundAt(a).Compare(report.BoundAt(b)) }).Spec.NodeName
	}
	reader, err = r.SecretReader(node)
	return reader, node, err
}

// reportUnreadable reports on the Pods why a virtual node may not read a Secret.
func (r hostRoots[T]) reportUnreadable(o *observed, node string, err error) {
	refusal := report.SecretsRefusal(r.Member, node, err)
	if refusal == nil {
		return
	}
	recent := func(pod *corev1.Pod) bool { return report.AwaitsAuthorizer(pod, r.Clock.Now()) }
	if refusal.Reason == v1alpha1.ReasonNodeIdentityMissing || !slices.ContainsFunc(o.users, recent) {
		eventRefused(r.Recorder, o.users, refusal)
	}
}

// readsAsNode reports whether Xylem reads objects of a kind as the virtual node, and therefore only for bound Pods.
func readsAsNode(link *member.Link, kind string) bool {
	return link.SecretsAsNode && kind == refs.KindSecret
}

// missingRefusal reports that the host lacks an object that a Pod requires. It returns nil if no Pod does.
func missingRefusal(o *observed) *mirror.Refusal {
	if !slices.ContainsFunc(o.users, func(pod *corev1.Pod) bool { return podRequires(pod, o.kind, o.key.Name) }) {
		return nil
	}
	return mirror.NewRefusal(v1alpha1.ReasonReferenceMissing, "the Pod does not start in member %q: namespace %q of the host lacks %s %q, to which the Pod refers. Create it in that namespace, or mark the reference as optional",
		o.member.Registration, o.key.Namespace, o.kind, o.key.Name)
}
