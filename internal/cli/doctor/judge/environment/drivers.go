package environment

import (
	"fmt"
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/doctor/facts"
	"github.com/xylem-io/xylem/internal/cli/doctor/result"
	"github.com/xylem-io/xylem/internal/nodes"
)

// Drivers checks the CSIDrivers, which make the scheduler check capacity and CSINodes.
func Drivers(h *facts.Host) []result.Finding {
	found := slices.Concat(
		driver(h.Driver, v1alpha1.ProvisionerName, true, "Pods that use mirrored claims"),
		driver(h.Promises, v1alpha1.PromiseDriverName, false, "Pods that use promises"),
		csiNodes(h))
	if len(found) == 0 && h.Driver.Read && h.Promises.Read {
		return []result.Finding{result.Passed(result.CheckDriver, "", "CSIDrivers %q and %q have the settings that the scheduler needs", v1alpha1.ProvisionerName, v1alpha1.PromiseDriverName)}
	}
	return found
}

// driver reports what is wrong with a CSIDriver. what names the Pods that must not be scheduled to
// the host's own nodes.
func driver(d facts.Object[storagev1.CSIDriver], name string, capacity bool, what string) []result.Finding {
	switch {
	case !d.Read:
		return nil
	case d.Item == nil:
		return []result.Finding{result.Problem(result.Error, result.CheckDriver, "", fmt.Sprintf("the host has no CSIDriver %q, so the scheduler may choose the host's own nodes for %s", name, what), "Check that a manager is running and has permission to create the CSIDriver. The leading manager creates it.")}
	case ptr.Deref(d.Item.Spec.StorageCapacity, false) != capacity, ptr.Deref(d.Item.Spec.AttachRequired, true):
		return []result.Finding{result.Problem(result.Error, result.CheckDriver, "", fmt.Sprintf("CSIDriver %q does not have storageCapacity: %t and attachRequired: false, which Xylem needs", name, capacity), "Check that a manager is running and has permission to update the CSIDriver. The leading manager corrects it.")}
	}
	return nil
}

// csiNodes reports virtual nodes without a CSINode, if the host's scheduler may check CSINodes.
func csiNodes(h *facts.Host) []result.Finding {
	if !nodes.ReadsCSINodes(h.Driver.Item) || !h.Nodes.Read || !h.CSINodes.Read {
		return nil
	}
	names := withoutCSINode(h)
	if len(names) == 0 {
		return nil
	}
	level, effect := result.Warning, "the scheduler may choose the host's own nodes for Pods that use promises"
	if *h.Driver.Item.Spec.PreventPodSchedulingIfMissing {
		level, effect = result.Error, "the scheduler cannot place Pods that use members' volumes on these nodes"
	}
	return []result.Finding{result.Problem(level, result.CheckDriver, "", fmt.Sprintf("no CSINode with both of Xylem's drivers exists for %s, so %s", result.Named("Node", names), effect),
		fmt.Sprintf("See condition %s in `kubectl describe node NAME`. If the condition is missing, check that a manager is running.", v1alpha1.NodeCSINode))}
}

// withoutCSINode returns the names of virtual nodes without a CSINode that lists both drivers.
func withoutCSINode(h *facts.Host) []string {
	complete := sets.New[string]()
	for i := range h.CSINodes.Items {
		if nodes.NamesDrivers(&h.CSINodes.Items[i]) {
			complete.Insert(h.CSINodes.Items[i].Name)
		}
	}
	var names []string
	for i := range h.Nodes.Items {
		if name := h.Nodes.Items[i].Name; !complete.Has(name) {
			names = append(names, name)
		}
	}
	return names
}
