package rootconfig

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/report"
)

// rootReader finds the Pods that need a copy, and reads the root that is copied.
type rootReader[T client.Object] interface {
	// findUsers returns the host's Pods that need the copy. The Pods belong to the cache and must not be
	// changed.
	findUsers(ctx context.Context, key types.NamespacedName) ([]*corev1.Pod, error)
	// readRoot reads the root live. pause is the time until the next read, before jitter.
	readRoot(ctx context.Context, o *observed) (root T, found bool, pause time.Duration, err error)
}

// hostRoots reads ConfigMaps or Secrets.
type hostRoots[T client.Object] struct {
	*member.Link
	kind configKind[T]
	// reader reads live. boundOnly means that it reads only what bound Pods refer to.
	reader    client.Reader
	boundOnly bool
}

func (r hostRoots[T]) findUsers(ctx context.Context, key types.NamespacedName) ([]*corev1.Pod, error) {
	pods, err := index.PodsOfReference(ctx, r.Host, r.kind.reference, key)
	if err != nil {
		return nil, err
	}
	var users []*corev1.Pod
	for i := range pods {
		if r.boundOnly && pods[i].Spec.NodeName == "" {
			continue
		}
		uses, err := usesCopies(ctx, r.Link, &pods[i])
		if err != nil {
			return nil, err
		}
		if uses {
			users = append(users, &pods[i])
		}
	}
	return users, nil
}

func (r hostRoots[T]) readRoot(ctx context.Context, o *observed) (T, bool, time.Duration, error) {
	root := r.kind.empty()
	found, err := index.GetIfExists(ctx, r.reader, o.key, root)
	if err != nil {
		if refusal := report.NodeIdentityRefusal(r.Member, r.kind.reference+" "+o.key.Name, err); refusal != nil && r.boundOnly {
			eventRefused(r.Recorder, o.users, refusal)
		}
		return root, false, 0, fmt.Errorf("read %s %s: %w", r.kind.reference, o.key, err)
	}
	if !found && r.boundOnly { // root_pod could not check this before it created the leaf
		o.refusal = missingRefusal(o)
	}
	return root, found, readInterval, nil
}

// missingRefusal reports that the host lacks an object that a Pod requires. It returns nil if no Pod does.
func missingRefusal(o *observed) *mirror.Refusal {
	if !slices.ContainsFunc(o.users, func(pod *corev1.Pod) bool { return podRequires(pod, o.kind, o.key.Name) }) {
		return nil
	}
	return mirror.NewRefusal(v1alpha1.ReasonReferenceMissing, "the Pod does not start in member %q: namespace %q of the host lacks %s %q, to which the Pod refers. Create it in that namespace, or mark the reference as optional",
		o.member.Registration, o.key.Namespace, o.kind, o.key.Name)
}
