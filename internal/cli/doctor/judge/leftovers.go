package judge

import (
	"fmt"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/doctor/facts"
	"github.com/xylem-io/xylem/internal/cli/doctor/leftovers"
	"github.com/xylem-io/xylem/internal/cli/doctor/result"
)

// hostLeftovers reports objects in the host that belong to unregistered members.
func hostLeftovers(h *facts.Host) []result.Finding {
	if !h.Registrations.Read {
		return nil
	}
	left := leftovers.Of(h)
	var found []result.Finding
	report := func(level result.Level, kind string, names []string, why, toDo string) {
		if len(names) > 0 {
			found = append(found, result.Problem(level, result.CheckLeftovers, "", fmt.Sprintf("left over: %s. %s", result.Named(kind, names), why), toDo))
		}
	}
	report(result.Warning, "Node", left.Nodes, "These virtual nodes have no registration", "When no Pods are left on these nodes, delete them: kubectl delete node NAME")
	report(result.Warning, "Lease", left.Leases, "No virtual nodes with these names exist", "Delete the Leases: kubectl -n kube-node-lease delete lease NAME")
	report(result.Error, "PersistentVolume", left.Volumes, "The volumes are in clusters that are not registered, so Xylem cannot complete their deletion",
		fmt.Sprintf("Register the clusters again. To abandon the PersistentVolumes instead, and keep their data: kubectl annotate pv NAME %s=true", v1alpha1.AnnotationAbandon))
	report(result.Warning, "Secret", left.Secrets, "They contain credentials for clusters, but no registration refers to them",
		fmt.Sprintf("Delete the Secrets: kubectl -n %s delete secret NAME. Also delete the manager's account in the member.", h.Namespace))
	report(result.Warning, "CSIStorageCapacity", left.Capacities, "They publish the capacity of clusters that are not registered", fmt.Sprintf("Delete the objects: kubectl -n %s delete csistoragecapacity NAME", h.Namespace))
	report(result.Warning, "StorageClass", left.Classes, "They were reflected from members that are not registered", "Delete the classes, unless new claims should use them: kubectl delete storageclass NAME")
	whole := h.Nodes.Read && h.Heartbeats.Read && h.Volumes.Read && h.Secrets.Read && h.Capacities.Read && h.Classes.Read
	if len(found) == 0 && whole {
		return []result.Finding{result.Passed(result.CheckLeftovers, "", "members that are not registered left nothing behind")}
	}
	return found
}
