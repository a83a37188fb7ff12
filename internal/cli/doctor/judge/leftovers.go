package judge

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/doctor/facts"
)

// known are what registrations refer to.
type known struct {
	names, ids, nodes, secrets sets.Set[string]
}

func knownIn(h *facts.Host) known {
	k := known{sets.New[string](), sets.New[string](), sets.New[string](), sets.New[string]()}
	for i := range h.Registrations.Items {
		r := &h.Registrations.Items[i]
		k.names.Insert(r.Name)
		k.nodes.Insert(r.NodeName())
		k.secrets.Insert(r.Spec.KubeconfigSecretRef.Name)
		if r.Status.ClusterID != "" {
			k.ids.Insert(r.Status.ClusterID)
		}
	}
	return k
}

// hostLeftovers finds what belongs to members that are not registered.
func hostLeftovers(h *facts.Host) []Finding {
	if !h.Registrations.Read {
		return nil
	}
	k := knownIn(h)
	var found []Finding
	report := func(level Level, kind string, names []string, why, toDo string) {
		if len(names) > 0 {
			slices.Sort(names)
			found = append(found, Finding{level, CheckLeftovers, "", fmt.Sprintf("left over: %s. %s", named(kind, names), why), toDo})
		}
	}
	nodes := k.strayNodes(h)
	report(Warning, "Node", nodes, "No registration has these virtual nodes", "Once no Pod is left there, delete them: kubectl delete node NAME")
	report(Warning, "Lease", k.strayLeases(h), "No virtual node of that name exists", "Delete them: kubectl -n kube-node-lease delete lease NAME")
	report(Error, "PersistentVolume", k.strayVolumes(h), "No registration has the cluster that they are in, so that their deletion never ends",
		fmt.Sprintf("Register that cluster again. Or abandon them, and keep their data: kubectl annotate pv NAME %s=true", v1alpha1.AnnotationAbandon))
	report(Warning, "Secret", k.straySecrets(h), "They have credentials of clusters, and no registration refers to them",
		fmt.Sprintf("Delete them: kubectl -n %s delete secret NAME. In the member, delete the account too.", h.Namespace))
	report(Warning, "CSIStorageCapacity", k.strayCapacities(h), "They publish capacity of clusters that no registration has", fmt.Sprintf("Delete them: kubectl -n %s delete csistoragecapacity NAME", h.Namespace))
	report(Warning, "StorageClass", k.strayClasses(h), "They were reflected from members that are not registered", "Delete them, unless new claims should use them: kubectl delete storageclass NAME")
	whole := h.Nodes.Read && h.Heartbeats.Read && h.Volumes.Read && h.Secrets.Read && h.Capacities.Read && h.Classes.Read
	if len(found) == 0 && whole {
		return []Finding{ok(CheckLeftovers, "", "nothing is left of members that are not registered")}
	}
	return found
}

func (k known) strayNodes(h *facts.Host) []string {
	var stray []string
	for i := range h.Nodes.Items {
		if node := &h.Nodes.Items[i]; !k.nodes.Has(node.Name) {
			stray = append(stray, node.Name)
		}
	}
	return stray
}

func (k known) strayLeases(h *facts.Host) []string {
	var stray []string
	if !h.Nodes.Read {
		return nil
	}
	there := sets.New[string]()
	for i := range h.Nodes.Items {
		there.Insert(h.Nodes.Items[i].Name)
	}
	for i := range h.Heartbeats.Items {
		if name := h.Heartbeats.Items[i].Name; !there.Has(name) && !k.nodes.Has(name) {
			stray = append(stray, name)
		}
	}
	return stray
}

func (k known) strayVolumes(h *facts.Host) []string {
	var stray []string
	for i := range h.Volumes.Items {
		pv := &h.Volumes.Items[i]
		if slices.Contains(pv.Finalizers, v1alpha1.FinalizerLeafVolume) && !k.ids.Has(pv.Labels[v1alpha1.LabelClusterID]) {
			stray = append(stray, pv.Name)
		}
	}
	return stray
}

func (k known) straySecrets(h *facts.Host) []string {
	var stray []string
	for i := range h.Secrets.Items {
		if name := h.Secrets.Items[i].Name; !k.secrets.Has(name) {
			stray = append(stray, name)
		}
	}
	return stray
}

func (k known) strayCapacities(h *facts.Host) []string {
	var stray []string
	for i := range h.Capacities.Items {
		c := &h.Capacities.Items[i]
		if id := clusterOf(c.NodeTopology); id != "" && !k.ids.Has(id) {
			stray = append(stray, c.Name)
		}
	}
	return stray
}

// clusterOf returns the cluster ID that a topology selects.
func clusterOf(topology *metav1.LabelSelector) string {
	if topology == nil {
		return ""
	}
	return topology.MatchLabels[v1alpha1.LabelClusterID]
}

func (k known) strayClasses(h *facts.Host) []string {
	var stray []string
	for i := range h.Classes.Items {
		offered, alive := false, false
		for key := range h.Classes.Items[i].Labels {
			if name, by := strings.CutPrefix(key, v1alpha1.LabelOfferedByPrefix); by {
				offered, alive = true, alive || k.names.Has(name)
			}
		}
		if offered && !alive {
			stray = append(stray, h.Classes.Items[i].Name)
		}
	}
	return stray
}
