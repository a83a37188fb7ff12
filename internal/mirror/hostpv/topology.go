package hostpv

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// Topology is one of the alternatives in a leaf PV's node affinity: nodes of the member that can use the volume.
type Topology struct {
	// Label is the key of the label that virtual nodes with at least one of these nodes have.
	Label string
	// Term selects these nodes in the member.
	Term corev1.NodeSelectorTerm
}

// Limits of the node affinities that Xylem translates. Drivers use one or two terms. A member may contain other
// affinities, but each term costs its virtual nodes a label.
const (
	maxTopologies   = 16
	maxTopologySize = 2048
)

// TopologiesOf returns the topologies in a leaf PV's node affinity, sorted by label. It returns none if the affinity
// does not restrict the volume, or cannot be translated: all virtual nodes of the member then reach the volume.
func TopologiesOf(affinity *corev1.VolumeNodeAffinity) []Topology {
	if affinity == nil || affinity.Required == nil || len(affinity.Required.NodeSelectorTerms) > maxTopologies {
		return nil
	}
	var topologies []Topology
	for i := range affinity.Required.NodeSelectorTerms {
		topology, usable := topologyOf(&affinity.Required.NodeSelectorTerms[i])
		if !usable {
			return nil
		}
		topologies = append(topologies, topology)
	}
	slices.SortFunc(topologies, func(a, b Topology) int { return strings.Compare(a.Label, b.Label) })
	return slices.CompactFunc(topologies, func(a, b Topology) bool { return a.Label == b.Label })
}

// topologyOf returns the topology of one term. The order of its expressions and values has no effect. The term must not have
// fields: the scheduler compares a volume's affinity only with labels.
func topologyOf(term *corev1.NodeSelectorTerm) (Topology, bool) {
	if len(term.MatchExpressions) == 0 || len(term.MatchFields) > 0 || term.Size() > maxTopologySize {
		return Topology{}, false
	}
	canonical := *term.DeepCopy()
	for i := range canonical.MatchExpressions {
		values := canonical.MatchExpressions[i].Values
		slices.Sort(values)
		canonical.MatchExpressions[i].Values = slices.Compact(values)
	}
	slices.SortFunc(canonical.MatchExpressions, compareRequirements)
	canonical.MatchExpressions = slices.CompactFunc(canonical.MatchExpressions, func(a, b corev1.NodeSelectorRequirement) bool {
		return compareRequirements(a, b) == 0
	})
	encoded, err := json.Marshal(canonical)
	if err != nil {
		return Topology{}, false
	}
	if _, err := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{canonical}}); err != nil {
		return Topology{}, false
	}
	sum := sha256.Sum256(encoded)
	return Topology{Label: topologyLabel(&canonical, hex.EncodeToString(sum[:nameSuffixBytes])), Term: canonical}, true
}

func compareRequirements(a, b corev1.NodeSelectorRequirement) int {
	return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(string(a.Operator), string(b.Operator)), slices.Compare(a.Values, b.Values))
}

// topologyLabel returns a label key that shows the values of a term, as far as there is space, and its digest.
func topologyLabel(term *corev1.NodeSelectorTerm, digest string) string {
	var readable strings.Builder
	for _, e := range term.MatchExpressions {
		for _, value := range e.Values {
			for _, c := range value + "." {
				if c > 'z' || !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", c) {
					c = '-'
				}
				readable.WriteRune(c)
			}
		}
	}
	_, prefix, _ := strings.Cut(v1alpha1.LabelTopologyPrefix, "/")
	shown := readable.String()
	if limit := validation.LabelValueMaxLength - len(prefix) - len(digest) - 1; len(shown) > limit {
		shown = shown[:limit]
	}
	if shown = strings.Trim(shown, "-_."); shown != "" {
		shown += "-"
	}
	return v1alpha1.LabelTopologyPrefix + shown + digest
}
