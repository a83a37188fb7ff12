package move

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/move/objects"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/nodes"
)

// virtualNodeOf returns the virtual node of a member of a move, or an error that explains why no Pod can
// start there.
func virtualNodeOf(ctx context.Context, h *objects.Client, where objects.Place) (*corev1.Node, error) {
	all, err := h.Registrations(ctx)
	if err != nil {
		return nil, err
	}
	cr := Fleet(all).registrationOfCluster(where.ClusterID)
	if cr == nil {
		return nil, fmt.Errorf("member %q is no longer registered. Register it again", where.Registration)
	}
	return usableNodeOf(ctx, h, cr)
}

// Restored reads the registrations, and does what Fleet.Restored does.
func Restored(ctx context.Context, h *objects.Client, places ...objects.Place) (bool, error) {
	all, err := h.Registrations(ctx)
	if err != nil {
		return false, err
	}
	return Fleet(all).Restored(places...)
}

// Fleet contains the host's registrations.
type Fleet []v1alpha1.ClusterRegistration

// Restored reports whether the host or a member may have been restored from a backup since a move
// began: Xylem has detected a restore, or the member was deregistered or registered again. The
// record may then be older than the objects in the members. Restored returns an error while a
// restore is not confirmed.
func (f Fleet) Restored(places ...objects.Place) (bool, error) {
	restored := false
	for _, place := range places {
		cr := f.registrationOfCluster(place.ClusterID)
		if cr == nil {
			restored = true
			continue
		}
		connected := meta.FindStatusCondition(cr.Status.Conditions, v1alpha1.ConditionConnected)
		if connected != nil && (connected.Reason == v1alpha1.ReasonHostRestored || connected.Reason == v1alpha1.ReasonMemberRestored) {
			return false, fmt.Errorf("member %q or the host was restored from a backup, and no admin has confirmed the restore (`kubectl describe clusterregistration %s`): %s", cr.Name, cr.Name, connected.Message)
		}
		restored = restored || objects.PlaceOf(cr).Restores != place.Restores
	}
	return restored, nil
}

// Disconnected returns the reason why Xylem cannot know whether a volume's disk still exists, or "".
func (f Fleet) Disconnected(pv *corev1.PersistentVolume) string {
	clusterID, _, _, ours := hostpv.LeafOfHostVolume(pv)
	if !ours {
		return ""
	}
	cr := f.registrationOfCluster(clusterID)
	switch {
	case cr == nil:
		return fmt.Sprintf("the member of volume %q is not registered", pv.Name)
	case !meta.IsStatusConditionTrue(cr.Status.Conditions, v1alpha1.ConditionConnected):
		return fmt.Sprintf("member %q, which has volume %q, is not connected", cr.Name, pv.Name)
	}
	return ""
}

func (f Fleet) registrationNamed(name string) (*v1alpha1.ClusterRegistration, error) {
	var names []string
	for i := range f {
		if f[i].Name == name {
			return &f[i], nil
		}
		names = append(names, f[i].Name)
	}
	return nil, fmt.Errorf("no member %q is registered.%s `kubectl get clusterregistrations` lists the members", name, command.DidYouMean(name, names))
}

// registrationOfCluster returns the registration of a cluster, or nil.
func (f Fleet) registrationOfCluster(clusterID string) *v1alpha1.ClusterRegistration {
	i := slices.IndexFunc(f, func(cr v1alpha1.ClusterRegistration) bool { return cr.Status.ClusterID == clusterID })
	if i < 0 {
		return nil
	}
	return &f[i]
}

// usableNodeOf returns a virtual node of a member, or an error that explains why no Pod can start
// there.
func usableNodeOf(ctx context.Context, h *objects.Client, cr *v1alpha1.ClusterRegistration) (*corev1.Node, error) {
	if ready := meta.FindStatusCondition(cr.Status.Conditions, v1alpha1.ConditionReady); ready == nil || ready.Status != metav1.ConditionTrue {
		why := "its registration has no status yet."
		if ready != nil {
			why = ready.Message
		}
		return nil, fmt.Errorf("member %q is not ready (`kubectl describe clusterregistration %s`): %s", cr.Name, cr.Name, why)
	}
	list, err := index.NodesOfMember(ctx, h, cr)
	if err != nil {
		return nil, h.ExplainHostError(err)
	}
	var node *corev1.Node
	for i := range list {
		if node = &list[i]; !node.Spec.Unschedulable && nodes.IsReady(node) && !nodes.MemberAway(node) {
			return node, nil
		}
	}
	switch {
	case node == nil && len(cr.Spec.Nodes) > 0:
		return nil, fmt.Errorf("member %q has no Node in the host yet. Run this command again when one exists", cr.Name)
	case node == nil:
		return nil, fmt.Errorf("member %q has no Node %q in the host yet. Run this command again when the Node exists", cr.Name, cr.NodeName())
	case node.Spec.Unschedulable:
		return nil, fmt.Errorf("no Pod can start in member %q: somebody cordoned Node %q. Run `kubectl uncordon %s`", cr.Name, node.Name, node.Name)
	}
	return nil, fmt.Errorf("no Pod can start in member %q: Node %q is not ready, or the member is away. `kubectl describe node %s` shows why", cr.Name, node.Name, node.Name)
}
