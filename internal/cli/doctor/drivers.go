package doctor

import (
	"fmt"
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/nodes"
)

// Drivers checks the CSIDrivers, which make the scheduler check capacity and CSINodes.
func judgeDrivers(h *Host) []Finding {
	found := slices.Concat(
		judgeDriver(h.Driver, v1alpha1.ProvisionerName, true, "Pods that use mirrored claims"),
		judgeDriver(h.Promises, v1alpha1.PromiseDriverName, false, "Pods that use promises"),
		judgeCSINodes(h))
	if len(found) == 0 && h.Driver.Read && h.Promises.Read {
		return []Finding{Passed(CheckDriver, "", "CSIDrivers %q and %q have the settings that the scheduler needs", v1alpha1.ProvisionerName, v1alpha1.PromiseDriverName)}
	}
	return found
}

// driver reports what is wrong with a CSIDriver. what names the Pods that must not be scheduled to
// the host's own nodes.
func judgeDriver(d Object[storagev1.CSIDriver], name string, capacity bool, what string) []Finding {
	switch {
	case !d.Read:
		return nil
	case d.Item == nil:
		return []Finding{Problem(Error, CheckDriver, "", fmt.Sprintf("the host has no CSIDriver %q, so the scheduler may choose the host's own nodes for %s", name, what), "Check that a manager is running and has permission to create the CSIDriver. The leading manager creates it.")}
	case ptr.Deref(d.Item.Spec.StorageCapacity, false) != capacity, ptr.Deref(d.Item.Spec.AttachRequired, true):
		return []Finding{Problem(Error, CheckDriver, "", fmt.Sprintf("CSIDriver %q does not have storageCapacity: %t and attachRequired: false, which Xylem needs", name, capacity), "Check that a manager is running and has permission to update the CSIDriver. The leading manager corrects it.")}
	}
	return nil
}

// csiNodes reports virtual nodes without a CSINode, if the host's scheduler may check CSINodes.
func judgeCSINodes(h *Host) []Finding {
	if !nodes.ReadsCSINodes(h.Driver.Item) || !h.Nodes.Read || !h.CSINodes.Read {
		return nil
	}
	names := withoutCSINode(h)
	if len(names) == 0 {
		return nil
	}
	level, effect := Warning, "the scheduler may choose the host's own nodes for Pods that use promises"
	if *h.Driver.Item.Spec.PreventPodSchedulingIfMissing {
		level, effect = Error, "the scheduler cannot place Pods that use members' volumes on these nodes"
	}
	return []Finding{Problem(level, CheckDriver, "", fmt.Sprintf("no CSINode with both of Xylem's drivers exists for %s, so %s", Named("Node", names), effect),
		fmt.Sprintf("See condition %s in `kubectl describe node NAME`. If the condition is missing, check that a manager is running.", v1alpha1.NodeCSINode))}
}

// withoutCSINode returns the names of virtual nodes without a CSINode that lists both drivers.
func withoutCSINode(h *Host) []string {
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
