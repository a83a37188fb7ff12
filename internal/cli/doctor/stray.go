package doctor

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// strayNames lists the names of leftover objects, by kind.
type strayNames struct {
	Nodes, Leases, Volumes, Secrets, Capacities, Classes []string
}

// strayObjects returns the names of the leftover objects in a host. Its registrations must have been read.
func strayObjects(h *HostFacts) strayNames {
	k := namesOfRegistrations(h)
	names := strayNames{k.strayNodes(h), k.strayLeases(h), k.strayVolumes(h), k.straySecrets(h), k.strayCapacities(h), k.strayClasses(h)}
	for _, some := range [][]string{names.Nodes, names.Leases, names.Volumes, names.Secrets, names.Capacities, names.Classes} {
		slices.Sort(some)
	}
	return names
}

// registeredNames contains what registrations refer to.
type registeredNames struct {
	names, ids, nodes, secrets sets.Set[string]
}

func namesOfRegistrations(h *HostFacts) registeredNames {
	k := registeredNames{sets.New[string](), sets.New[string](), sets.New[string](), sets.New[string]()}
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

// hasNode reports whether a Node belongs to a registration's member. virtual_node deletes those of lost groups.
func (k registeredNames) hasNode(name string) bool {
	member, ofGroup := v1alpha1.MemberNodeOf(name)
	return k.nodes.Has(name) || ofGroup && k.nodes.Has(member)
}

func (k registeredNames) strayNodes(h *HostFacts) []string {
	var stray []string
	for i := range h.Nodes.Items {
		if node := &h.Nodes.Items[i]; !k.hasNode(node.Name) {
			stray = append(stray, node.Name)
		}
	}
	return stray
}

func (k registeredNames) strayLeases(h *HostFacts) []string {
	var stray []string
	if !h.Nodes.Read {
		return nil
	}
	there := sets.New[string]()
	for i := range h.Nodes.Items {
		there.Insert(h.Nodes.Items[i].Name)
	}
	for i := range h.Heartbeats.Items {
		if name := h.Heartbeats.Items[i].Name; !there.Has(name) && !k.hasNode(name) {
			stray = append(stray, name)
		}
	}
	return stray
}

func (k registeredNames) strayVolumes(h *HostFacts) []string {
	var stray []string
	for i := range h.Volumes.Items {
		pv := &h.Volumes.Items[i]
		if slices.Contains(pv.Finalizers, v1alpha1.FinalizerLeafVolume) && !k.ids.Has(pv.Labels[v1alpha1.LabelClusterID]) {
			stray = append(stray, pv.Name)
		}
	}
	return stray
}

func (k registeredNames) straySecrets(h *HostFacts) []string {
	var stray []string
	for i := range h.Secrets.Items {
		if name := h.Secrets.Items[i].Name; !k.secrets.Has(name) {
			stray = append(stray, name)
		}
	}
	return stray
}

func (k registeredNames) strayCapacities(h *HostFacts) []string {
	var stray []string
	for i := range h.Capacities.Items {
		c := &h.Capacities.Items[i]
		if id := clusterOfTopology(c.NodeTopology); id != "" && !k.ids.Has(id) {
			stray = append(stray, c.Name)
		}
	}
	return stray
}

// clusterOfTopology returns the cluster ID that a topology selects.
func clusterOfTopology(topology *metav1.LabelSelector) string {
	if topology == nil {
		return ""
	}
	return topology.MatchLabels[v1alpha1.LabelClusterID]
}

func (k registeredNames) strayClasses(h *HostFacts) []string {
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
