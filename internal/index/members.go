package index

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/nodes"
	"github.com/xylem-io/xylem/internal/placement"
)

// ListMembers returns the members of all registrations, including those that are Leaving and those
// without a Node. A member with spec.nodes is returned once for each of its virtual nodes. namespace is the manager's
// namespace, which contains the CSIStorageCapacities.
func ListMembers(ctx context.Context, r client.Reader, namespace string) ([]placement.Candidate, error) {
	largest, err := LargestVolumeSizes(ctx, r, namespace)
	if err != nil {
		return nil, err
	}
	var members []placement.Candidate
	for each, err := range eachRegistration(ctx, r) {
		if err != nil {
			return nil, err
		}
		members = append(members, each.candidate(largest))
	}
	return members, nil
}

// MembersWithNodes returns the members of all registrations that have a virtual node, without the capacity that they
// offer. A member with spec.nodes is returned once for each of its virtual nodes.
func MembersWithNodes(ctx context.Context, r client.Reader) ([]placement.Candidate, error) {
	var members []placement.Candidate
	for each, err := range eachRegistration(ctx, r) {
		if err != nil {
			return nil, err
		}
		if each.node != nil && each.node.Labels[v1alpha1.LabelCluster] == each.Name {
			members = append(members, each.candidate(nil))
		}
	}
	return members, nil
}

// ListVirtualNodes returns the Nodes that represent members.
func ListVirtualNodes(ctx context.Context, r client.Reader) ([]corev1.Node, error) {
	var list corev1.NodeList
	if err := r.List(ctx, &list, client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, v1alpha1.LabelVirtualNode: "true"}, ReadOnly); err != nil {
		return nil, fmt.Errorf("list the virtual nodes: %w", err)
	}
	return list.Items, nil
}

// registrationWithNode is a registration with its virtual node, which may be nil.
type registrationWithNode struct {
	*v1alpha1.ClusterRegistration
	node *corev1.Node
}

func (r registrationWithNode) candidate(largest map[string]map[string]resource.Quantity) placement.Candidate {
	return placement.Candidate{
		Member: placement.MemberOfRegistration(r.ClusterRegistration, r.node), Connection: ConnectionOf(r.ClusterRegistration), Largest: largest[r.Status.ClusterID],
	}
}

// eachRegistration returns all registrations. It returns a registration with spec.nodes once for each of its virtual
// nodes, ordered by name, or once without a Node if there is none.
func eachRegistration(ctx context.Context, r client.Reader) iter.Seq2[registrationWithNode, error] {
	return func(yield func(registrationWithNode, error) bool) {
		var list v1alpha1.ClusterRegistrationList
		if err := r.List(ctx, &list, ReadOnly); err != nil {
			yield(registrationWithNode{}, fmt.Errorf("list registrations: %w", err))
			return
		}
		var groups map[string][]*corev1.Node // by cluster ID
		for i := range list.Items {
			cr := &list.Items[i]
			if len(cr.Spec.Nodes) > 0 {
				var err error
				if groups == nil {
					groups, err = groupNodesByCluster(ctx, r)
				}
				if !yieldNodes(cr, groups[cr.Status.ClusterID], err, yield) {
					return
				}
				continue
			}
			node, err := wholeMemberNode(ctx, r, cr)
			if !yield(registrationWithNode{cr, node}, err) {
				return
			}
		}
	}
}

// yieldNodes yields a registration with spec.nodes.
func yieldNodes(cr *v1alpha1.ClusterRegistration, groups []*corev1.Node, err error, yield func(registrationWithNode, error) bool) bool {
	found := false
	for _, node := range groups {
		if cr.HasNode(node.Name) {
			if found = true; !yield(registrationWithNode{cr, node}, err) {
				return false
			}
		}
	}
	return found || yield(registrationWithNode{cr, nil}, err)
}

// groupNodesByCluster returns the virtual nodes of groups, by the cluster IDs of their members, ordered by name.
func groupNodesByCluster(ctx context.Context, r client.Reader) (map[string][]*corev1.Node, error) {
	list, err := ListVirtualNodes(ctx, r)
	groups := map[string][]*corev1.Node{}
	slices.SortFunc(list, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	for i := range list {
		if cluster := list[i].Labels[v1alpha1.LabelClusterID]; cluster != "" && list[i].Labels[v1alpha1.LabelNodeGroup] != "" {
			groups[cluster] = append(groups[cluster], &list[i])
		}
	}
	return groups, err
}

// wholeMemberNode returns the Node that represents the whole member of a registration, or nil.
func wholeMemberNode(ctx context.Context, r client.Reader, cr *v1alpha1.ClusterRegistration) (*corev1.Node, error) {
	node, err := FindObject[corev1.Node](ctx, r, ClusterScopedKey(cr.NodeName()))
	if nodes.NameTaken(node, cr.Status.ClusterID) {
		return nil, err
	}
	return node, err
}

// NodesOfMember returns the Nodes that represent a registration's member or the groups of its nodes. With spec.nodes, it
// includes those that are no longer needed.
func NodesOfMember(ctx context.Context, r client.Reader, cr *v1alpha1.ClusterRegistration) ([]corev1.Node, error) {
	if len(cr.Spec.Nodes) == 0 {
		node, err := wholeMemberNode(ctx, r, cr)
		if node == nil {
			return nil, err
		}
		return []corev1.Node{*node}, nil
	}
	return AllNodesOfMember(ctx, r, cr)
}

// AllNodesOfMember returns the Nodes of NodesOfMember and, if spec.nodes was removed, those of the groups that it
// described.
func AllNodesOfMember(ctx context.Context, r client.Reader, cr *v1alpha1.ClusterRegistration) ([]corev1.Node, error) {
	list, err := ListVirtualNodes(ctx, r)
	list = slices.DeleteFunc(list, func(node corev1.Node) bool {
		return !cr.HasNode(node.Name) || nodes.NameTaken(&node, cr.Status.ClusterID)
	})
	slices.SortFunc(list, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return list, err
}

// ConnectionOf returns the connection that a registration reports.
func ConnectionOf(cr *v1alpha1.ClusterRegistration) placement.Connection {
	c := meta.FindStatusCondition(cr.Status.Conditions, v1alpha1.ConditionConnected)
	return placement.Connection{
		Connected:  c != nil && c.Status == metav1.ConditionTrue,
		Connecting: c == nil || c.Reason == v1alpha1.ReasonConnecting || c.Reason == v1alpha1.ReasonWaitingForFence,
	}
}

// RegistrationState contains the fields of a registration on which a Member depends, for route.PartChanged.
type RegistrationState struct {
	generation int64
	cluster    string
	leaving    bool
	connection placement.Connection
}

// RegistrationStateOf returns the RegistrationState of a ClusterRegistration.
func RegistrationStateOf(cr *v1alpha1.ClusterRegistration) RegistrationState {
	return RegistrationState{cr.Generation, cr.Status.ClusterID, cr.DeletionTimestamp != nil, ConnectionOf(cr)}
}

// LargestVolumeSizes returns the maximum volume sizes that members offer, by cluster ID and class. It reads
// the CSIStorageCapacities like the scheduler
// (k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding).
func LargestVolumeSizes(ctx context.Context, r client.Reader, namespace string) (map[string]map[string]resource.Quantity, error) {
	var list storagev1.CSIStorageCapacityList
	if err := r.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}, ReadOnly); err != nil {
		return nil, fmt.Errorf("list CSIStorageCapacities: %w", err)
	}
	return largestIn(list.Items), nil
}

func largestIn(capacities []storagev1.CSIStorageCapacity) map[string]map[string]resource.Quantity {
	found := map[string]map[string]resource.Quantity{}
	for i := range capacities {
		c := &capacities[i]
		cluster := c.Labels[v1alpha1.LabelClusterID]
		if found[cluster] == nil {
			found[cluster] = map[string]resource.Quantity{}
		}
		if size := cmp.Or(c.MaximumVolumeSize, c.Capacity); size != nil {
			found[cluster][c.StorageClassName] = *size
		}
	}
	return found
}
