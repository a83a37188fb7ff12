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
	"github.com/xylem-io/xylem/internal/mirror/hostclass"
	"github.com/xylem-io/xylem/internal/placement"
)

// checkMemberSuits checks that a member has the class and the capacity for a claim, and admits the claim's
// namespace.
func checkMemberSuits(ctx context.Context, h *objects.Client, claim *corev1.PersistentVolumeClaim, to *v1alpha1.ClusterRegistration) error {
	class, err := index.Find[storagev1.StorageClass](ctx, h, client.ObjectKey{Name: ptr.Deref(claim.Spec.StorageClassName, "")})
	switch {
	case err != nil:
		return h.ExplainHostError(err)
	case class == nil:
		return fmt.Errorf("the host has no StorageClass %q, so no copy can be provisioned. Create it again", ptr.Deref(claim.Spec.StorageClassName, ""))
	case !hostclass.Mirrors(class), !hostclass.WaitsForConsumer(class):
		return fmt.Errorf("StorageClass %q does not let Xylem create volumes in the member where a Pod is placed. The StorageClass needs provisioner %s, %s=%s and volumeBindingMode WaitForFirstConsumer", class.Name, v1alpha1.ProvisionerName, v1alpha1.ParameterProvisioning, v1alpha1.ProvisioningMirror)
	}
	node, err := usableNodeOf(ctx, h, to)
	if err != nil {
		return err
	}
	namespace, err := index.Find[corev1.Namespace](ctx, h, client.ObjectKey{Name: claim.Namespace})
	if err != nil {
		return h.ExplainHostError(err)
	}
	answer := placement.MemberOf(to, node).Answer(placement.Request{Namespace: placement.NamespaceOf(claim.Namespace, namespace), Class: class})
	if answer.Refusal != nil {
		return fmt.Errorf("member %q cannot take the claim: %s", to.Name, answer.Refusal.Message)
	}
	var capacities storagev1.CSIStorageCapacityList
	if err := h.List(ctx, &capacities); err != nil {
		return h.ExplainHostError(fmt.Errorf("list CSIStorageCapacities: %w", err))
	}
	return checkCapacitySuffices(capacities.Items, class.Name, answer.Class, to.Name, node, claim.Spec.Resources.Requests[corev1.ResourceStorage])
}

// checkCapacitySuffices compares a size with the capacities that Xylem publishes, as the scheduler does.
func checkCapacitySuffices(all []storagev1.CSIStorageCapacity, class, inMember, member string, node *corev1.Node, size resource.Quantity) error {
	published := false
	for i := range all {
		c := &all[i]
		topology, err := metav1.LabelSelectorAsSelector(c.NodeTopology)
		if err != nil || c.StorageClassName != class || !topology.Matches(labels.Set(node.Labels)) {
			continue
		}
		limit := cmp.Or(c.MaximumVolumeSize, c.Capacity)
		if limit == nil {
			continue
		}
		if limit.Cmp(size) < 0 {
			return fmt.Errorf("member %q can create volumes of StorageClass %q only up to %s, but the copy needs %s. Free capacity in the member, or choose another member", member, class, limit, &size)
		}
		published = true
	}
	if !published {
		return fmt.Errorf("member %q has no capacity for StorageClass %q of the host: the member lacks StorageClass %q, or has not reported capacity for that class yet. Create the class in the member, change spec.storage.classes of the member's registration, or choose another member", member, class, inMember)
	}
	return nil
}
