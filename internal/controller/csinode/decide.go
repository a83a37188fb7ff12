package csinode

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/nodes"
)

// observed is the input of decide.
type observed struct {
	// node is nil if it is not a virtual node. csiNode is the CSINode with that name, even if it is
	// foreign, or nil.
	node    *corev1.Node
	csiNode *storagev1.CSINode
	// counts reports whether the host's scheduler may check CSINodes.
	counts bool
	// recheck is when to check again whether the name of a foreign CSINode is free. The cache contains
	// no foreign CSINodes, so no event reports their deletion.
	recheck time.Duration
}

type act int

const (
	nothing act = iota
	create
	patch
)

type decision struct {
	do      act
	after   *storagev1.CSINode
	problem *problem
	again   time.Duration // 0 to wait for the next event
}

// problem is the reason why a virtual node has no CSINode that Xylem created.
type problem struct{ reason, message string }

func decide(o observed) decision {
	switch {
	case o.node == nil, o.node.DeletionTimestamp != nil:
		return decision{} // the garbage collector deletes the CSINode
	case o.csiNode == nil:
		return decision{do: create, after: completed(&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{
			Name: o.node.Name, Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue},
		}}, o.node)}
	case o.csiNode.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByValue:
		return decision{problem: &problem{v1alpha1.ReasonCSINodeNameTaken, fmt.Sprintf(
			"CSINode %q exists, and Xylem did not create it, so Pods that use members' volumes cannot be placed on this node. Delete the CSINode with `kubectl delete csinode %s`, so that Xylem creates its own",
			o.csiNode.Name, o.csiNode.Name)}, again: o.recheck}
	}
	if after := completed(o.csiNode.DeepCopy(), o.node); !equality.Semantic.DeepEqual(o.csiNode, after) {
		return decision{do: patch, after: after}
	}
	return decision{}
}

// completed adds what Xylem needs to a CSINode. It keeps the entries of other drivers, and the
// fields that an admin has set in Xylem's entries.
func completed(csiNode *storagev1.CSINode, node *corev1.Node) *storagev1.CSINode {
	for _, label := range []string{v1alpha1.LabelCluster, v1alpha1.LabelClusterID} {
		metav1.SetMetaDataLabel(&csiNode.ObjectMeta, label, node.Labels[label])
	}
	owner := metav1.OwnerReference{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Node", Name: node.Name, UID: node.UID}
	if !slices.ContainsFunc(csiNode.OwnerReferences, func(is metav1.OwnerReference) bool { return is.UID == owner.UID }) {
		others := slices.DeleteFunc(csiNode.OwnerReferences, func(is metav1.OwnerReference) bool { return is.Kind == owner.Kind })
		csiNode.OwnerReferences = append(others, owner)
	}
	for _, driver := range nodes.Drivers() {
		if !nodes.NamesDriver(csiNode, driver) {
			csiNode.Spec.Drivers = append(csiNode.Spec.Drivers, storagev1.CSINodeDriver{Name: driver, NodeID: node.Name})
		}
	}
	return csiNode
}

// notWritten describes a write that the host's API server rejected.
func notWritten(node string, err error) *problem {
	return &problem{v1alpha1.ReasonCSINodeMissing, fmt.Sprintf(
		"Xylem cannot write CSINode %q, so Pods that use members' volumes cannot be placed on this node: %v. Let the manager's account create and patch CSINodes, as in config/rbac", node, err)}
}

// withCondition returns the Node with a condition that reports the problem, or without this
// condition if p is nil. It returns nil if nothing changes.
func withCondition(node *corev1.Node, p *problem, now metav1.Time) *corev1.Node {
	is := nodes.Condition(node, v1alpha1.NodeCSINode)
	if p == nil && is == nil {
		return nil
	}
	after := node.DeepCopy()
	if p == nil {
		after.Status.Conditions = slices.DeleteFunc(after.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == v1alpha1.NodeCSINode })
		return after
	}
	nodes.SetCondition(after, corev1.NodeCondition{Type: v1alpha1.NodeCSINode, Status: corev1.ConditionFalse, Reason: p.reason, Message: p.message}, now)
	if is != nil && *is == *nodes.Condition(after, v1alpha1.NodeCSINode) {
		return nil
	}
	return after
}
