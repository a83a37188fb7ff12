package guarded

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// PatchNodeStatus changes the status of one of Xylem's virtual nodes from before to after.
func (r *HostWriter) PatchNodeStatus(ctx context.Context, by Actor, before, after *corev1.Node) error {
	if err := checkVirtualNode(before); err != nil {
		return err
	}
	if err := r.guard.CheckFenceHeld(); err != nil {
		return err
	}
	err := r.client.Status().Patch(ctx, after, ConditionalPatch(before), by.fieldOwner())
	return CountWrite(r.cluster, r.side, "patch_status", before, err)
}

// CreateNodeLease creates the Lease of a virtual node, which is its heartbeat.
func (r *HostWriter) CreateNodeLease(ctx context.Context, by Actor, node *corev1.Node, lease *coordinationv1.Lease) error {
	if err := checkNodeLease(node, lease); err != nil {
		return err
	}
	return r.createObject(ctx, by, lease)
}

// PatchNodeLease changes the Lease of a virtual node from before to after.
func (r *HostWriter) PatchNodeLease(ctx context.Context, by Actor, node *corev1.Node, before, after *coordinationv1.Lease) error {
	if err := checkNodeLease(node, before); err != nil {
		return err
	}
	return r.patchObject(ctx, by, before, after)
}

func checkVirtualNode(node *corev1.Node) error {
	if err := checkOwned(node); err != nil {
		return err
	}
	if node.Labels[v1alpha1.LabelVirtualNode] != "true" {
		return newForeignError(node, "it is not a virtual node")
	}
	return nil
}

// checkNodeLease checks that a Lease belongs to its virtual node. A kubelet's Lease never belongs to
// Xylem, even if its name matches a virtual node. A Lease that a virtual node owns belongs to
// Xylem, with or without the label.
func checkNodeLease(node *corev1.Node, lease *coordinationv1.Lease) error {
	if err := checkVirtualNode(node); err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(lease)
	if key != (client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: node.Name}) {
		return newForeignError(lease, "it is not the Lease of node "+node.Name)
	}
	for _, owner := range lease.OwnerReferences {
		if owner.UID == node.UID {
			return nil
		}
	}
	return checkOwned(lease)
}
