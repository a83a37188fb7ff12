package virtualnode

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/tools/events"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/nodes"
	"github.com/xylem-io/xylem/internal/wording"
)

// reportNameTaken reports that another Node has the name of a registration's node.
func reportNameTaken(recorder events.EventRecorder, registration *v1alpha1.ClusterRegistration, node *corev1.Node) {
	recorder.Eventf(registration, node, corev1.EventTypeWarning, v1alpha1.ReasonNodeNameTaken, "MakeNode", "%s", nodes.DescribeNameTaken(node))
}

// reportRegistrationGone reports that a Node's registration is gone while Pods are bound to the
// Node.
func reportRegistrationGone(recorder events.EventRecorder, node *corev1.Node, registration string, pods int) {
	recorder.Eventf(node, nil, corev1.EventTypeWarning, v1alpha1.ReasonRegistrationGone, "KeepNode",
		"ClusterRegistration %q is gone, but the cluster was not deregistered, and the node still has Pods (%s). Register the cluster again under that name, or delete the Pods: Xylem then deletes the node",
		registration, wording.CountNoun(pods, "Pod"))
}

// reportForeignDriver emits an event on a foreign CSIDriver that differs from what Xylem needs.
func reportForeignDriver(recorder events.EventRecorder, driver *storagev1.CSIDriver, differs string) {
	recorder.Eventf(driver, nil, corev1.EventTypeWarning, v1alpha1.ReasonNotOfXylem, "KeepCSIDriver",
		"Xylem did not create this CSIDriver, which differs from what Xylem needs (%s). Delete the CSIDriver, so that Xylem creates its own, or label it %s=%s", differs, v1alpha1.LabelManagedBy, v1alpha1.ManagedByValue)
}
