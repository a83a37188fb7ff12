package move

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/move/objects"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/placement"
)

// checkMemberSuits checks that a member has the class and the capacity for the copy of a claim, and admits the claim's
// namespace.
func checkMemberSuits(ctx context.Context, h *objects.Client, name string, claim *corev1.PersistentVolumeClaim, to *v1alpha1.ClusterRegistration) error {
	class, err := index.FindObject[storagev1.StorageClass](ctx, h, client.ObjectKey{Name: ptr.Deref(claim.Spec.StorageClassName, "")})
	switch {
	case err != nil:
		return h.ExplainHostError(err)
	case class == nil:
		return fmt.Errorf("the host has no StorageClass %q, so no copy can be provisioned. Create it again", ptr.Deref(claim.Spec.StorageClassName, ""))
	case !hostpv.IsMirrorClass(class), !hostpv.WaitsForConsumer(class):
		return fmt.Errorf("StorageClass %q does not let Xylem create volumes in the member where a Pod is placed. The StorageClass needs provisioner %s, %s=%s and volumeBindingMode WaitForFirstConsumer", class.Name, v1alpha1.ProvisionerName, v1alpha1.ParameterProvisioning, v1alpha1.ProvisioningMirror)
	}
	node, err := usableNodeOf(ctx, h, to)
	if err != nil {
		return err
	}
	namespace, err := index.FindObject[corev1.Namespace](ctx, h, client.ObjectKey{Name: claim.Namespace})
	if err != nil {
		return h.ExplainHostError(err)
	}
	var capacities storagev1.CSIStorageCapacityList
	if err := h.List(ctx, &capacities); err != nil {
		return h.ExplainHostError(fmt.Errorf("list CSIStorageCapacities: %w", err))
	}
	query := placement.Query{Namespace: placement.NamespaceOf(claim.Namespace, namespace), Claims: []placement.ClaimNeed{{
		Name: name, Class: class, Size: claim.Spec.Resources.Requests[corev1.ResourceStorage],
	}}}
	there := placement.Candidate{Member: placement.MemberOfRegistration(to, node), Connection: index.ConnectionOf(to), Largest: largestOn(node, capacities.Items)}
	if refusal := query.VerdictOn(there).Refusal(); refusal != nil {
		return fmt.Errorf("member %q cannot take the claim: %s", to.Name, refusal.Message)
	}
	return nil
}

// largestOn returns the maximum volume size of each class on a virtual node, as the scheduler determines it.
func largestOn(node *corev1.Node, capacities []storagev1.CSIStorageCapacity) map[string]resource.Quantity {
	largest := map[string]resource.Quantity{}
	for i := range capacities {
		c := &capacities[i]
		topology, err := metav1.LabelSelectorAsSelector(c.NodeTopology)
		size := cmp.Or(c.MaximumVolumeSize, c.Capacity)
		if err != nil || size == nil || !topology.Matches(labels.Set(node.Labels)) {
			continue
		}
		if known, found := largest[c.StorageClassName]; !found || size.Cmp(known) < 0 {
			largest[c.StorageClassName] = *size
		}
	}
	return largest
}
