package virtualnode

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/nodes"
)

const csiNodeActor = guarded.Actor("csi-node")

// reconcileCSINode creates or patches the CSINode of a virtual node, and reports in the Node's condition if that is
// impossible. It returns when to check again if no event enqueues the registration. The condition is not written if the
// same reconcile has changed the Node, because the Node's event enqueues the registration again.
func (r *Reconciler) reconcileCSINode(ctx context.Context, node *corev1.Node, unchanged bool) (time.Duration, error) {
	csiNode, err := r.csiNodeOf(ctx, node.Name)
	if err != nil {
		return 0, err
	}
	d := decideCSINode(node, csiNode)
	switch {
	case d.after == nil:
	case csiNode == nil:
		err = r.host.CreateOwned(ctx, csiNodeActor, d.after)
	default:
		err = r.host.PatchOwned(ctx, csiNodeActor, csiNode, d.after)
	}
	switch {
	case report.IsRejectedWrite(err):
		ctrl.LoggerFrom(ctx).Error(err, "the host's API server does not let Xylem write a CSINode", "node", node.Name)
		d.problem = csiNodeNotWritten(node.Name, err)
	case apierrors.IsAlreadyExists(err):
		return 0, guarded.NewUnseenError(err)
	case err != nil:
		return 0, err
	}
	if unchanged {
		err = r.reportCSINode(ctx, node, d.problem)
	}
	if d.problem == nil {
		return 0, err
	}
	return r.Recheck, err // no event reports that the name is free, or that the write is allowed
}

// csiNodeOf returns the CSINode with a Node's name, even if it is foreign, or nil. The cache lacks foreign CSINodes.
func (r *Reconciler) csiNodeOf(ctx context.Context, node string) (*storagev1.CSINode, error) {
	csiNode, err := index.FindObject[storagev1.CSINode](ctx, r.Client, index.ClusterScopedKey(node))
	if err == nil && csiNode == nil {
		return index.FindObject[storagev1.CSINode](ctx, r.Live, index.ClusterScopedKey(node))
	}
	return csiNode, err
}

// reportCSINode sets or removes the Node's condition, and emits an event if the problem is new. Unless the host's
// scheduler may check CSINodes, there is no problem.
func (r *Reconciler) reportCSINode(ctx context.Context, node *corev1.Node, problem *csiNodeProblem) error {
	driver, err := index.FindObject[storagev1.CSIDriver](ctx, r.Client, index.ClusterScopedKey(v1alpha1.ProvisionerName))
	if err != nil {
		return err
	}
	if !nodes.SchedulerReadsCSINodes(driver) {
		problem = nil
	}
	after := withCSINodeCondition(node, problem, metav1.NewTime(r.Clock.Now()))
	if after == nil {
		return nil
	}
	before := nodes.FindCondition(node, v1alpha1.NodeCSINode)
	if err := r.host.PatchNodeStatus(ctx, csiNodeActor, node, after); err != nil {
		return err
	}
	if problem != nil && (before == nil || before.Reason != problem.reason) {
		r.Recorder.Eventf(node, nil, corev1.EventTypeWarning, problem.reason, "CreateCSINode", "%s", problem.message)
	}
	return nil
}

type csiNodeDecision struct {
	// after is the CSINode to create or to patch, or nil.
	after   *storagev1.CSINode
	problem *csiNodeProblem
}

// csiNodeProblem is the reason why a virtual node has no CSINode that Xylem created.
type csiNodeProblem struct{ reason, message string }

// decideCSINode decides what to do with the CSINode of a virtual node. It may be foreign, or nil.
func decideCSINode(node *corev1.Node, csiNode *storagev1.CSINode) csiNodeDecision {
	switch {
	case node.DeletionTimestamp != nil:
		return csiNodeDecision{} // the garbage collector deletes the CSINode
	case csiNode == nil:
		return csiNodeDecision{after: withXylemEntries(&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{
			Name: node.Name, Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue},
		}}, node)}
	case csiNode.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByValue:
		return csiNodeDecision{problem: &csiNodeProblem{v1alpha1.ReasonCSINodeNameTaken, fmt.Sprintf(
			"CSINode %q exists, and Xylem did not create it, so Pods that use members' volumes cannot be placed on this node. Delete the CSINode with `kubectl delete csinode %s`, so that Xylem creates its own",
			csiNode.Name, csiNode.Name)}}
	}
	if after := withXylemEntries(csiNode.DeepCopy(), node); !equality.Semantic.DeepEqual(csiNode, after) {
		return csiNodeDecision{after: after}
	}
	return csiNodeDecision{}
}

// withXylemEntries adds what Xylem needs to a CSINode. It keeps the entries of other drivers, and the
// fields that an admin has set in Xylem's entries.
func withXylemEntries(csiNode *storagev1.CSINode, node *corev1.Node) *storagev1.CSINode {
	for _, label := range []string{v1alpha1.LabelCluster, v1alpha1.LabelClusterID} {
		metav1.SetMetaDataLabel(&csiNode.ObjectMeta, label, node.Labels[label])
	}
	owner := metav1.OwnerReference{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Node", Name: node.Name, UID: node.UID}
	if !slices.ContainsFunc(csiNode.OwnerReferences, func(is metav1.OwnerReference) bool { return is.UID == owner.UID }) {
		others := slices.DeleteFunc(csiNode.OwnerReferences, func(is metav1.OwnerReference) bool { return is.Kind == owner.Kind })
		csiNode.OwnerReferences = append(others, owner)
	}
	for _, driver := range nodes.DriverNames() {
		if !nodes.CSINodeNamesDriver(csiNode, driver) {
			csiNode.Spec.Drivers = append(csiNode.Spec.Drivers, storagev1.CSINodeDriver{Name: driver, NodeID: node.Name})
		}
	}
	return csiNode
}

// csiNodeNotWritten describes a write that the host's API server rejected.
func csiNodeNotWritten(node string, err error) *csiNodeProblem {
	return &csiNodeProblem{v1alpha1.ReasonCSINodeMissing, fmt.Sprintf(
		"Xylem cannot write CSINode %q, so Pods that use members' volumes cannot be placed on this node: %v. Let the manager's account create and patch CSINodes, as in config/rbac", node, err)}
}

// withCSINodeCondition returns the Node with a condition that reports the problem, or without this
// condition if p is nil. It returns nil if nothing changes.
func withCSINodeCondition(node *corev1.Node, p *csiNodeProblem, now metav1.Time) *corev1.Node {
	is := nodes.FindCondition(node, v1alpha1.NodeCSINode)
	if p == nil && is == nil {
		return nil
	}
	after := node.DeepCopy()
	if p == nil {
		after.Status.Conditions = slices.DeleteFunc(after.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == v1alpha1.NodeCSINode })
		return after
	}
	nodes.SetCondition(after, corev1.NodeCondition{Type: v1alpha1.NodeCSINode, Status: corev1.ConditionFalse, Reason: p.reason, Message: p.message}, now)
	if is != nil && *is == *nodes.FindCondition(after, v1alpha1.NodeCSINode) {
		return nil
	}
	return after
}
