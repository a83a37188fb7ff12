package doctor

import (
	"fmt"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// hostLeftovers reports objects in the host that belong to unregistered members.
func judgeHostLeftovers(h *Host) []Finding {
	if !h.Registrations.Read {
		return nil
	}
	left := strayObjects(h)
	var found []Finding
	report := func(level Level, kind string, names []string, why, toDo string) {
		if len(names) > 0 {
			found = append(found, Problem(level, CheckLeftovers, "", fmt.Sprintf("left over: %s. %s", Named(kind, names), why), toDo))
		}
	}
	report(Warning, "Node", left.Nodes, "These virtual nodes have no registration", "When no Pods are left on these nodes, delete them: kubectl delete node NAME")
	report(Warning, "Lease", left.Leases, "No virtual nodes with these names exist", "Delete the Leases: kubectl -n kube-node-lease delete lease NAME")
	report(Error, "PersistentVolume", left.Volumes, "The volumes are in clusters that are not registered, so Xylem cannot complete their deletion",
		fmt.Sprintf("Register the clusters again. To abandon the PersistentVolumes instead, and keep their data: kubectl annotate pv NAME %s=true", v1alpha1.AnnotationAbandon))
	report(Warning, "Secret", left.Secrets, "They contain credentials for clusters, but no registration refers to them",
		fmt.Sprintf("Delete the Secrets: kubectl -n %s delete secret NAME. Also delete the manager's account in the member.", h.Namespace))
	report(Warning, "CSIStorageCapacity", left.Capacities, "They publish the capacity of clusters that are not registered", fmt.Sprintf("Delete the objects: kubectl -n %s delete csistoragecapacity NAME", h.Namespace))
	report(Warning, "StorageClass", left.Classes, "They were reflected from members that are not registered", "Delete the classes, unless new claims should use them: kubectl delete storageclass NAME")
	whole := h.Nodes.Read && h.Heartbeats.Read && h.Volumes.Read && h.Secrets.Read && h.Capacities.Read && h.Classes.Read
	if len(found) == 0 && whole {
		return []Finding{Passed(CheckLeftovers, "", "members that are not registered left nothing behind")}
	}
	return found
}
