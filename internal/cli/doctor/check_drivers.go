package doctor

import (
	"context"
	"fmt"
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/nodes"
)

// CheckDriver is the name of this check.
const CheckDriver Check = "Driver"

var driverCheck = checkOf[*Facts]{name: CheckDriver, read: readDrivers, judge: infallible(judgeDrivers)}

// driverFacts are the CSIDrivers and the CSINodes of virtual nodes.
type driverFacts struct {
	// Driver is the CSIDriver for volumes in members, and Promises is the one for promises.
	Driver, Promises inspect.Object[storagev1.CSIDriver]
	// CSINodes are the CSINodes that Xylem created for the virtual nodes.
	CSINodes inspect.Objects[storagev1.CSINode]
}

func readDrivers(ctx context.Context, r *inspect.Reader, f *Facts) {
	d := &f.Host.driverFacts
	d.Driver = inspect.ReadObject[storagev1.CSIDriver](ctx, r, "CSIDriver "+v1alpha1.ProvisionerName, client.ObjectKey{Name: v1alpha1.ProvisionerName})
	d.Promises = inspect.ReadObject[storagev1.CSIDriver](ctx, r, "CSIDriver "+v1alpha1.PromiseDriverName, client.ObjectKey{Name: v1alpha1.PromiseDriverName})
	d.CSINodes = inspect.ReadList(ctx, r, "CSINodes of virtual nodes", &storagev1.CSINodeList{}, func(l *storagev1.CSINodeList) []storagev1.CSINode { return l.Items }, created)
}

// judgeDrivers checks the CSIDrivers, which make the scheduler check capacity and CSINodes.
func judgeDrivers(f *Facts) []Finding {
	h := &f.Host
	found := slices.Concat(
		judgeDriver(h.Driver, v1alpha1.ProvisionerName, true, "Pods that use mirrored claims"),
		judgeDriver(h.Promises, v1alpha1.PromiseDriverName, false, "Pods that use promises"),
		judgeCSINodes(h))
	if len(found) == 0 && h.Driver.Read && h.Promises.Read {
		return []Finding{passed("CSIDrivers %q and %q have the settings that the scheduler needs", v1alpha1.ProvisionerName, v1alpha1.PromiseDriverName)}
	}
	return found
}

// judgeDriver reports what is wrong with a CSIDriver. what names the Pods that must not be scheduled to
// the host's own nodes.
func judgeDriver(d inspect.Object[storagev1.CSIDriver], name string, capacity bool, what string) []Finding {
	switch {
	case !d.Read:
		return nil
	case d.Item == nil:
		return []Finding{problem(Error, fmt.Sprintf("the host has no CSIDriver %q, so the scheduler may choose the host's own nodes for %s", name, what), "Check that a manager is running and has permission to create the CSIDriver. The leading manager creates it.")}
	case ptr.Deref(d.Item.Spec.StorageCapacity, false) != capacity, ptr.Deref(d.Item.Spec.AttachRequired, true):
		return []Finding{problem(Error, fmt.Sprintf("CSIDriver %q does not have storageCapacity: %t and attachRequired: false, which Xylem needs", name, capacity), "Check that a manager is running and has permission to update the CSIDriver. The leading manager corrects it.")}
	}
	return nil
}

// judgeCSINodes reports virtual nodes without a CSINode, if the host's scheduler may check CSINodes.
func judgeCSINodes(h *HostFacts) []Finding {
	if !nodes.SchedulerReadsCSINodes(h.Driver.Item) || !h.Nodes.Read || !h.CSINodes.Read {
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
	return []Finding{problem(level, fmt.Sprintf("no CSINode with both of Xylem's drivers exists for %s, so %s", enumerateNamed("Node", names), effect),
		fmt.Sprintf("See condition %s in `kubectl describe node NAME`. If the condition is missing, check that a manager is running.", v1alpha1.NodeCSINode))}
}

// withoutCSINode returns the names of virtual nodes without a CSINode that lists both drivers.
func withoutCSINode(h *HostFacts) []string {
	complete := sets.New[string]()
	for i := range h.CSINodes.Items {
		if nodes.CSINodeNamesAllDrivers(&h.CSINodes.Items[i]) {
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
