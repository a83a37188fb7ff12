package plan

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/move/host"
	"github.com/xylem-io/xylem/internal/cli/move/record"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/nodes"
)

// Node returns the virtual node of a member of a move, or an error that explains why no Pod can
// start there.
func Node(ctx context.Context, h *host.Client, where record.Place) (*corev1.Node, error) {
	all, err := h.Registrations(ctx)
	if err != nil {
		return nil, err
	}
	cr := fleet(all).of(where.ClusterID)
	if cr == nil {
		return nil, fmt.Errorf("member %q is no longer registered. Register it again", where.Registration)
	}
	return usable(ctx, h, cr)
}

// fleet contains the host's registrations.
type fleet []v1alpha1.ClusterRegistration

func (f fleet) named(name string) (*v1alpha1.ClusterRegistration, error) {
	var names []string
	for i := range f {
		if f[i].Name == name {
			return &f[i], nil
		}
		names = append(names, f[i].Name)
	}
	return nil, fmt.Errorf("no member %q.%s `kubectl get clusterregistrations` lists the members", name, command.DidYouMean(name, names))
}

// of returns the registration of a cluster, or nil.
func (f fleet) of(clusterID string) *v1alpha1.ClusterRegistration {
	i := slices.IndexFunc(f, func(cr v1alpha1.ClusterRegistration) bool { return cr.Status.ClusterID == clusterID })
	if i < 0 {
		return nil
	}
	return &f[i]
}

// usable returns the virtual node of a member, or an error that explains why no Pod can start
// there.
func usable(ctx context.Context, h *host.Client, cr *v1alpha1.ClusterRegistration) (*corev1.Node, error) {
	if ready := meta.FindStatusCondition(cr.Status.Conditions, v1alpha1.ConditionReady); ready == nil || ready.Status != metav1.ConditionTrue {
		why := "its registration has no status yet."
		if ready != nil {
			why = ready.Message
		}
		return nil, fmt.Errorf("member %q is not ready (`kubectl describe clusterregistration %s`): %s", cr.Name, cr.Name, why)
	}
	node, err := index.Find[corev1.Node](ctx, h, client.ObjectKey{Name: cr.NodeName()})
	switch {
	case err != nil:
		return nil, h.Explain(err)
	case node == nil:
		return nil, fmt.Errorf("member %q has no Node %q in the host yet. Run this command again when the Node exists", cr.Name, cr.NodeName())
	case node.Spec.Unschedulable:
		return nil, fmt.Errorf("no Pod can start in member %q: somebody cordoned Node %q. Run `kubectl uncordon %s`", cr.Name, node.Name, node.Name)
	case !nodes.IsReady(node), nodes.Away(node):
		return nil, fmt.Errorf("no Pod can start in member %q: Node %q is not ready, or the member is away. `kubectl describe node %s` shows why", cr.Name, node.Name, node.Name)
	}
	return node, nil
}
