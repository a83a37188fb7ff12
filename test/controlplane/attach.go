package controlplane

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// attaches reports whether the cluster's CSI driver attaches volumes.
func (c *Cluster) attaches() bool { return c.options.Attach && c.options.Storage != nil }

// ensureCSINode creates the CSINode that a kubelet would create for its drivers. csi-attacher
// reads the driver's node name from it. An annotation on the Node makes kube-controller-manager
// attach the node's volumes (see node).
func (c *Cluster) ensureCSINode(ctx context.Context, name string) error {
	node, err := c.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("create the CSINode of %s: %w", name, err)
	}
	_, err = c.client.StorageV1().CSINodes().Create(ctx, &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Node", Name: name, UID: node.UID},
		}},
		Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
			{Name: c.options.Storage.DriverName, NodeID: name},
		}},
	}, metav1.CreateOptions{})
	return unlessExists(err)
}

// attacherRules are the RBAC rules for csi-attacher, from its deploy/kubernetes/rbac.yaml.
func attacherRules() []rbacv1.PolicyRule {
	readPatch := append([]string{"patch"}, read...)
	return []rbacv1.PolicyRule{
		rule("", []string{"persistentvolumes"}, readPatch),
		rule(storagev1.GroupName, []string{"csinodes"}, read),
		rule(storagev1.GroupName, []string{"volumeattachments"}, readPatch),
		rule(storagev1.GroupName, []string{"volumeattachments/status"}, []string{"patch"}),
	}
}
