package index

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

// Namespace reads a host namespace, for the registrations' namespace rules.
func Namespace(ctx context.Context, r client.Reader, name string) (placement.Namespace, error) {
	cached, err := Find[corev1.Namespace](ctx, r, Named(name))
	return placement.NamespaceOf(name, cached), err
}

// Connection is the state of a registration's Connected condition. A member is Connecting until the
// manager's first attempt to connect has ended.
type Connection struct{ Connected, Connecting bool }

// Registered returns the members of all registrations that are not being deleted, including those
// without a Node. namespace is the manager's namespace, which contains the CSIStorageCapacities.
func Registered(ctx context.Context, r client.Reader, namespace string) ([]Member, error) {
	largest, err := Largest(ctx, r, namespace)
	if err != nil {
		return nil, err
	}
	var members []Member
	for registration, err := range registrations(ctx, r) {
		if err != nil {
			return nil, err
		}
		if registration.DeletionTimestamp == nil {
			members = append(members, Member{registration.member(), ConnectionOf(registration.ClusterRegistration), largest[registration.Status.ClusterID]})
		}
	}
	return members, nil
}

// Members returns the members of all registrations that have a virtual node.
func Members(ctx context.Context, r client.Reader) ([]placement.Member, error) {
	var members []placement.Member
	for registration, err := range registrations(ctx, r) {
		if err != nil {
			return nil, err
		}
		if registration.node != nil && registration.node.Labels[v1alpha1.LabelCluster] == registration.Name {
			members = append(members, registration.member())
		}
	}
	return members, nil
}

// VirtualNodes returns the Nodes that represent members.
func VirtualNodes(ctx context.Context, r client.Reader) ([]corev1.Node, error) {
	var list corev1.NodeList
	if err := r.List(ctx, &list, client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, v1alpha1.LabelVirtualNode: "true"}, ReadOnly); err != nil {
		return nil, fmt.Errorf("list the virtual nodes: %w", err)
	}
	return list.Items, nil
}

// registered is a registration with its virtual node, which may be nil.
type registered struct {
	*v1alpha1.ClusterRegistration
	node *corev1.Node
}

func (r registered) member() placement.Member {
	return placement.MemberOf(r.ClusterRegistration, r.node)
}

func registrations(ctx context.Context, r client.Reader) iter.Seq2[registered, error] {
	return func(yield func(registered, error) bool) {
		var list v1alpha1.ClusterRegistrationList
		if err := r.List(ctx, &list, ReadOnly); err != nil {
			yield(registered{}, fmt.Errorf("list registrations: %w", err))
			return
		}
		for i := range list.Items {
			cr := &list.Items[i]
			node, err := Find[corev1.Node](ctx, r, Named(cr.NodeName()))
			if nodes.Taken(node, cr.Status.ClusterID) {
				node = nil
			}
			if !yield(registered{cr, node}, err) {
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
	if err := r.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}, ReadOnly); err != nil {
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
