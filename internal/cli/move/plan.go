package move

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/hostclass"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/nodes"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/text"
)

// fleet contains the host's registrations.
type fleet []v1alpha1.ClusterRegistration

func (o *options) fleet(ctx context.Context) (fleet, error) {
	var list v1alpha1.ClusterRegistrationList
	if err := o.host.List(ctx, &list); err != nil {
		if meta.IsNoMatchError(err) {
			return nil, fmt.Errorf("xylem is not installed in the host at %s: it has no kind ClusterRegistration. Choose another cluster with --context", o.host.Config.Host)
		}
		return nil, o.explain(fmt.Errorf("list registrations: %w", err))
	}
	return list.Items, nil
}

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
func (o *options) usable(ctx context.Context, cr *v1alpha1.ClusterRegistration) (*corev1.Node, error) {
	if ready := meta.FindStatusCondition(cr.Status.Conditions, v1alpha1.ConditionReady); ready == nil || ready.Status != metav1.ConditionTrue {
		why := "its registration has no status yet."
		if ready != nil {
			why = ready.Message
		}
		return nil, fmt.Errorf("member %q is not ready (`kubectl describe clusterregistration %s`): %s", cr.Name, cr.Name, why)
	}
	node, err := index.Find[corev1.Node](ctx, o.host, client.ObjectKey{Name: cr.NodeName()})
	switch {
	case err != nil:
		return nil, o.explain(err)
	case node == nil:
		return nil, fmt.Errorf("member %q has no Node %q in the host yet. Run this command again when the Node exists", cr.Name, cr.NodeName())
	case node.Spec.Unschedulable:
		return nil, fmt.Errorf("no Pod can start in member %q: somebody cordoned Node %q. Run `kubectl uncordon %s`", cr.Name, node.Name, node.Name)
	case !nodes.IsReady(node), nodes.Away(node):
		return nil, fmt.Errorf("no Pod can start in member %q: Node %q is not ready, or the member is away. `kubectl describe node %s` shows why", cr.Name, node.Name, node.Name)
	}
	return node, nil
}

// using returns the names of the Pods that use one of the claims, except the Pods of the move. It
// includes terminated Pods, because they also keep the claim from being deleted.
func using(pods []corev1.Pod, id string, claims ...string) []string {
	var names []string
	for i := range pods {
		if id != "" && pods[i].Labels[v1alpha1.LabelMove] == id && pods[i].Labels[v1alpha1.LabelManagedBy] == manager {
			continue
		}
		if slices.ContainsFunc(podspec.ClaimNames(&pods[i]), func(name string) bool { return slices.Contains(claims, name) }) {
			names = append(names, pods[i].Name)
		}
	}
	return names
}

// unused checks that no Pod uses the claims, except the Pods of the move.
func (o *options) unused(ctx context.Context, id string, claims ...string) error {
	var pods corev1.PodList
	if err := o.host.List(ctx, &pods, client.InNamespace(o.namespace)); err != nil {
		return o.explain(fmt.Errorf("list Pods: %w", err))
	}
	names := using(pods.Items, id, claims...)
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("claim %q is in use by %s (%s), but nobody may write to the disk during a move. Scale their owner down or delete them, including terminated Pods, then run this command again",
		claims[0], text.Count(len(names), "Pod"), text.Quoted(names...))
}

// plan checks everything that a new move needs, and returns its record and the old volume.
func (o *options) plan(ctx context.Context, name string) (*record, error) {
	all, err := o.fleet(ctx)
	if err != nil {
		return nil, err
	}
	to, err := all.named(o.to)
	if err != nil {
		return nil, err
	}
	claim, old, err := o.bound(ctx, name)
	if err != nil {
		return nil, err
	}
	from, err := o.origin(all, claim, old, to)
	if err != nil {
		return nil, err
	}
	for _, cr := range []*v1alpha1.ClusterRegistration{from, to} {
		if _, err := o.usable(ctx, cr); err != nil {
			return nil, err
		}
	}
	id := o.newID()
	r := &record{
		ID: id, Phase: copying, Claim: manifest(claim), ClaimUID: claim.UID, Copy: copyName(name, id),
		From: place{from.Name, from.Status.ClusterID}, To: place{to.Name, to.Status.ClusterID},
		Old: disk{old.Name, old.UID, old.Spec.PersistentVolumeReclaimPolicy},
	}
	if err := o.suits(ctx, copyClaim(r, old), to); err != nil {
		return nil, err
	}
	return r, o.unused(ctx, "", name)
}

// bound returns a claim and its volume, or an error if they cannot be moved.
func (o *options) bound(ctx context.Context, name string) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume, error) {
	claim, err := index.Find[corev1.PersistentVolumeClaim](ctx, o.host, client.ObjectKey{Namespace: o.namespace, Name: name})
	switch {
	case err != nil:
		return nil, nil, o.explain(err)
	case claim == nil:
		return nil, nil, fmt.Errorf("no claim %q in namespace %q. `kubectl get pvc -n %s` lists the claims", name, o.namespace, o.namespace)
	case claim.DeletionTimestamp != nil:
		return nil, nil, fmt.Errorf("claim %q is being deleted. Create it again before you move it", name)
	case claim.Status.Phase != corev1.ClaimBound:
		return nil, nil, fmt.Errorf("claim %q is not bound, so it has no data: its phase is %s. `kubectl xylem why pvc/%s -n %s` shows why", name, claim.Status.Phase, name, o.namespace)
	case len(claim.Spec.AccessModes) == 1 && claim.Spec.AccessModes[0] == corev1.ReadOnlyMany:
		return nil, nil, fmt.Errorf("claim %q has only access mode ReadOnlyMany, so this command cannot write a copy. Create the data in the other member in the same way as in this one", name)
	}
	old, err := index.Find[corev1.PersistentVolume](ctx, o.host, client.ObjectKey{Name: claim.Spec.VolumeName})
	switch {
	case err != nil:
		return nil, nil, o.explain(err)
	case old == nil, !hostpv.PointsAt(old, claim):
		return nil, nil, fmt.Errorf("claim %q has lost its volume %q. `kubectl xylem why pvc/%s -n %s` shows what to do", name, claim.Spec.VolumeName, name, o.namespace)
	case hostpv.IsPromise(old):
		return nil, nil, fmt.Errorf("claim %q has a class with %s=%s, and such claims cannot be moved. Copy the data to another claim", name, v1alpha1.ParameterProvisioning, v1alpha1.ProvisioningPromise)
	}
	return claim, old, nil
}

// origin returns the member that has the volume.
func (o *options) origin(all fleet, claim *corev1.PersistentVolumeClaim, old *corev1.PersistentVolume, to *v1alpha1.ClusterRegistration) (*v1alpha1.ClusterRegistration, error) {
	clusterID, _, _, ours := hostpv.LeafOf(old)
	from := all.of(clusterID)
	switch {
	case !ours:
		return nil, fmt.Errorf("volume %q of claim %q is not in a member, but this command moves volumes only between members. Copy the data to another claim", old.Name, claim.Name)
	case from == nil:
		return nil, fmt.Errorf("the cluster with ID %s, which has volume %q, is not registered. Register it again, so that Xylem can use its volumes", clusterID, old.Name)
	case to.Status.ClusterID == "":
		return nil, fmt.Errorf("the manager has not connected to member %q yet. `kubectl describe clusterregistration %s` shows why", to.Name, to.Name)
	case clusterID == to.Status.ClusterID:
		return nil, nothing{fmt.Errorf("the data of claim %q is already in member %q", claim.Name, to.Name)}
	}
	return from, nil
}

// suits checks that a member has the class and the capacity for a claim, and admits the claim's
// namespace.
func (o *options) suits(ctx context.Context, claim *corev1.PersistentVolumeClaim, to *v1alpha1.ClusterRegistration) error {
	class, err := index.Find[storagev1.StorageClass](ctx, o.host, client.ObjectKey{Name: ptr.Deref(claim.Spec.StorageClassName, "")})
	switch {
	case err != nil:
		return o.explain(err)
	case class == nil:
		return fmt.Errorf("the host has no StorageClass %q, so no copy can be provisioned. Create it again", ptr.Deref(claim.Spec.StorageClassName, ""))
	case !hostclass.Mirrors(class), ptr.Deref(class.VolumeBindingMode, storagev1.VolumeBindingImmediate) != storagev1.VolumeBindingWaitForFirstConsumer:
		return fmt.Errorf("StorageClass %q does not let Xylem create volumes in the member where a Pod is placed. It needs provisioner %s, %s=%s and volumeBindingMode WaitForFirstConsumer", class.Name, v1alpha1.ProvisionerName, v1alpha1.ParameterProvisioning, v1alpha1.ProvisioningMirror)
	}
	node, err := o.usable(ctx, to)
	if err != nil {
		return err
	}
	namespace, err := index.Find[corev1.Namespace](ctx, o.host, client.ObjectKey{Name: claim.Namespace})
	if err != nil {
		return o.explain(err)
	}
	answer := placement.MemberOf(to, node).Answer(placement.Request{Namespace: placement.NamespaceOf(claim.Namespace, namespace), Class: class})
	if answer.Refusal != nil {
		return fmt.Errorf("member %q cannot take the claim: %s", to.Name, answer.Refusal.Message)
	}
	var capacities storagev1.CSIStorageCapacityList
	if err := o.host.List(ctx, &capacities); err != nil {
		return o.explain(fmt.Errorf("list CSIStorageCapacities: %w", err))
	}
	return enough(capacities.Items, class.Name, answer.Class, to.Name, node, claim.Spec.Resources.Requests[corev1.ResourceStorage])
}

// enough compares a size with the capacities that Xylem publishes, as the scheduler does.
func enough(all []storagev1.CSIStorageCapacity, class, inMember, member string, node *corev1.Node, size resource.Quantity) error {
	published := false
	for i := range all {
		c := &all[i]
		topology, err := metav1.LabelSelectorAsSelector(c.NodeTopology)
		if err != nil || c.StorageClassName != class || !topology.Matches(labels.Set(node.Labels)) {
			continue
		}
		limit := c.MaximumVolumeSize
		if limit == nil {
			limit = c.Capacity
		}
		if limit == nil {
			continue
		}
		if limit.Cmp(size) < 0 {
			return fmt.Errorf("member %q can create volumes of StorageClass %q only up to %s, but the copy needs %s. Free capacity there, or choose another member", member, class, limit, &size)
		}
		published = true
	}
	if !published {
		return fmt.Errorf("member %q has no capacity for StorageClass %q of the host: it lacks its StorageClass %q, or has not reported capacity for it yet. Create it there, change spec.storage.classes of its registration, or choose another member", member, class, inMember)
	}
	return nil
}
