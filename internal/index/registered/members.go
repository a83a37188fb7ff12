package registered

import (
	"cmp"
	"context"
	"fmt"
	"iter"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/nodes"
	"github.com/xylem-io/xylem/internal/placement"
)

// Member describes a registered member, according to the host's objects.
type Member struct {
	placement.Member
	Connection
	// Largest contains the maximum volume size of each class that the member offers.
	Largest map[string]resource.Quantity
}

// Connection is the state of a registration's Connected condition. A member is Connecting until the
// manager's first attempt to connect has ended.
type Connection struct{ Connected, Connecting bool }

// Members returns the members of all registrations, including those that are Leaving and those
// without a Node. namespace is the manager's namespace, which contains the CSIStorageCapacities.
func Members(ctx context.Context, r client.Reader, namespace string) ([]Member, error) {
	largest, err := Largest(ctx, r, namespace)
	if err != nil {
		return nil, err
	}
	var members []Member
	for each, err := range registrations(ctx, r) {
		if err != nil {
			return nil, err
		}
		members = append(members, Member{each.member(), ConnectionOf(each.ClusterRegistration), largest[each.Status.ClusterID]})
	}
	return members, nil
}

// Split separates the members that stay from those that are Leaving.
func Split(members []Member) (staying, leaving []Member) {
	for _, m := range members {
		if m.Leaving {
			leaving = append(leaving, m)
		} else {
			staying = append(staying, m)
		}
	}
	return staying, leaving
}

// WithNodes returns the members of all registrations that have a virtual node.
func WithNodes(ctx context.Context, r client.Reader) ([]placement.Member, error) {
	var members []placement.Member
	for each, err := range registrations(ctx, r) {
		if err != nil {
			return nil, err
		}
		if each.node != nil && each.node.Labels[v1alpha1.LabelCluster] == each.Name {
			members = append(members, each.member())
		}
	}
	return members, nil
}

// VirtualNodes returns the Nodes that represent members.
func VirtualNodes(ctx context.Context, r client.Reader) ([]corev1.Node, error) {
	var list corev1.NodeList
	if err := r.List(ctx, &list, client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, v1alpha1.LabelVirtualNode: "true"}, index.ReadOnly); err != nil {
		return nil, fmt.Errorf("list the virtual nodes: %w", err)
	}
	return list.Items, nil
}

// registration is a registration with its virtual node, which may be nil.
type registration struct {
	*v1alpha1.ClusterRegistration
	node *corev1.Node
}

func (r registration) member() placement.Member {
	return placement.MemberOf(r.ClusterRegistration, r.node)
}

func registrations(ctx context.Context, r client.Reader) iter.Seq2[registration, error] {
	return func(yield func(registration, error) bool) {
		var list v1alpha1.ClusterRegistrationList
		if err := r.List(ctx, &list, index.ReadOnly); err != nil {
			yield(registration{}, fmt.Errorf("list registrations: %w", err))
			return
		}
		for i := range list.Items {
			cr := &list.Items[i]
			node, err := index.Find[corev1.Node](ctx, r, index.Named(cr.NodeName()))
			if nodes.Taken(node, cr.Status.ClusterID) {
				node = nil
			}
			if !yield(registration{cr, node}, err) {
				return
			}
		}
	}
}

// ConnectionOf returns the connection that a registration reports.
func ConnectionOf(cr *v1alpha1.ClusterRegistration) Connection {
	c := meta.FindStatusCondition(cr.Status.Conditions, v1alpha1.ConditionConnected)
	return Connection{
		Connected:  c != nil && c.Status == metav1.ConditionTrue,
		Connecting: c == nil || c.Reason == v1alpha1.ReasonConnecting || c.Reason == v1alpha1.ReasonWaitingForFence,
	}
}

// Registration contains the fields of a registration on which a Member depends, for route.Of.
type Registration struct {
	generation int64
	cluster    string
	leaving    bool
	connection Connection
}

// RegistrationOf returns the Registration of a ClusterRegistration.
func RegistrationOf(cr *v1alpha1.ClusterRegistration) Registration {
	return Registration{cr.Generation, cr.Status.ClusterID, cr.DeletionTimestamp != nil, ConnectionOf(cr)}
}

// Largest returns the maximum volume sizes that members offer, by cluster ID and class. It reads
// the CSIStorageCapacities like the scheduler
// (k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding).
func Largest(ctx context.Context, r client.Reader, namespace string) (map[string]map[string]resource.Quantity, error) {
	var list storagev1.CSIStorageCapacityList
	if err := r.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}, index.ReadOnly); err != nil {
		return nil, fmt.Errorf("list CSIStorageCapacities: %w", err)
	}
	found := map[string]map[string]resource.Quantity{}
	for i := range list.Items {
		c := &list.Items[i]
		cluster := c.Labels[v1alpha1.LabelClusterID]
		if found[cluster] == nil {
			found[cluster] = map[string]resource.Quantity{}
		}
		if size := cmp.Or(c.MaximumVolumeSize, c.Capacity); size != nil {
			found[cluster][c.StorageClassName] = *size
		}
	}
	return found, nil
}
