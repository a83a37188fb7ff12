package hostpv_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/mirrortest"
)

func affinityTo(terms ...corev1.NodeSelectorTerm) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}
}

func topologyTerm(expressions ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: expressions}
}

func requires(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: operator, Values: values}
}

const zone, region = corev1.LabelTopologyZone, corev1.LabelTopologyRegion

func TestTopologiesOf(t *testing.T) {
	many := make([]corev1.NodeSelectorTerm, 17)
	for i := range many {
		many[i] = topologyTerm(requires(zone, corev1.NodeSelectorOpIn, fmt.Sprint("z", i)))
	}
	zoneA := topologyTerm(requires(zone, corev1.NodeSelectorOpIn, "a"))
	for name, c := range map[string]struct {
		affinity *corev1.VolumeNodeAffinity
		want     []string // the labels, without their prefix and digest
	}{
		"no affinity":                     {affinity: nil},
		"an affinity without a selector":  {affinity: &corev1.VolumeNodeAffinity{}},
		"a selector without terms":        {affinity: affinityTo()},
		"a zone":                          {affinity: affinityTo(zoneA), want: []string{"a"}},
		"several keys":                    {affinity: affinityTo(topologyTerm(requires(zone, corev1.NodeSelectorOpIn, "a"), requires(region, corev1.NodeSelectorOpIn, "eu"))), want: []string{"eu.a"}},
		"several values":                  {affinity: affinityTo(topologyTerm(requires(zone, corev1.NodeSelectorOpIn, "b", "a"))), want: []string{"a.b"}},
		"several terms":                   {affinity: affinityTo(topologyTerm(requires(zone, corev1.NodeSelectorOpIn, "b")), zoneA), want: []string{"a", "b"}},
		"the same term twice":             {affinity: affinityTo(zoneA, zoneA), want: []string{"a"}},
		"no value":                        {affinity: affinityTo(topologyTerm(requires(zone, corev1.NodeSelectorOpExists))), want: []string{""}},
		"a long value":                    {affinity: affinityTo(topologyTerm(requires(zone, corev1.NodeSelectorOpIn, strings.Repeat("n", 63)))), want: []string{strings.Repeat("n", 37)}},
		"16 terms":                        {affinity: affinityTo(many[:16]...), want: []string{"z0", "z1", "z10", "z11", "z12", "z13", "z14", "z15", "z2", "z3", "z4", "z5", "z6", "z7", "z8", "z9"}},
		"17 terms":                        {affinity: affinityTo(many...)},
		"an empty term":                   {affinity: affinityTo(zoneA, topologyTerm())},
		"a field, which PVs cannot match": {affinity: affinityTo(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{requires("metadata.name", corev1.NodeSelectorOpIn, "n")}})},
		"an unknown operator":             {affinity: affinityTo(zoneA, topologyTerm(requires(zone, "Near", "a")))},
		"a key that is not valid":         {affinity: affinityTo(topologyTerm(requires("no key", corev1.NodeSelectorOpIn, "a")))},
		"a value that is not valid":       {affinity: affinityTo(topologyTerm(requires(zone, corev1.NodeSelectorOpIn, "n\x00/ü")))},
		"a term that is too large":        {affinity: affinityTo(topologyTerm(requires(zone, corev1.NodeSelectorOpIn, strings.Split(strings.Repeat("zone ", 500), " ")...)))},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, topology := range hostpv.TopologiesOf(c.affinity) {
				if problems := validation.IsQualifiedName(topology.Label); len(problems) > 0 {
					t.Errorf("label %q: %v", topology.Label, problems)
				}
				readable := strings.TrimPrefix(topology.Label, "xylem.io/topology-")
				got = append(got, strings.TrimSuffix(readable[:len(readable)-16], "-"))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}

// Existing virtual nodes and host PVs have these labels, so they must never change.
func TestTopologyLabelsAreStable(t *testing.T) {
	got := hostpv.TopologiesOf(affinityTo(topologyTerm(requires(zone, corev1.NodeSelectorOpIn, "zone-a"))))
	if len(got) != 1 || got[0].Label != "xylem.io/topology-zone-a-7d3f8e8b50606147" {
		t.Errorf("topologies: %v", got)
	}
}

func TestTopologyOrderHasNoEffect(t *testing.T) {
	one := topologyTerm(requires(zone, corev1.NodeSelectorOpIn, "a", "b"), requires(region, corev1.NodeSelectorOpIn, "eu"))
	other := topologyTerm(requires(region, corev1.NodeSelectorOpIn, "eu", "eu"), requires(zone, corev1.NodeSelectorOpIn, "b", "a", "b"), requires(region, corev1.NodeSelectorOpIn, "eu"))
	differs := topologyTerm(requires(zone, corev1.NodeSelectorOpNotIn, "a", "b"), requires(region, corev1.NodeSelectorOpIn, "eu"))
	before := other.DeepCopy()
	if diff := cmp.Diff(hostpv.TopologiesOf(affinityTo(one, differs)), hostpv.TopologiesOf(affinityTo(differs, other))); diff != "" {
		t.Errorf("the order has an effect:\n%s", diff)
	}
	if diff := cmp.Diff(*before, other); diff != "" {
		t.Errorf("TopologiesOf changed its argument:\n%s", diff)
	}
	if a, b := hostpv.TopologiesOf(affinityTo(one))[0].Label, hostpv.TopologiesOf(affinityTo(differs))[0].Label; a == b {
		t.Errorf("two topologies have label %s", a)
	}
}

func TestNodeAffinityOfHostVolume(t *testing.T) {
	groups := mirrortest.Member
	groups.NodeGroups = []v1alpha1.NodeGroup{{ForEach: &v1alpha1.ForEachNode{Node: true}}}
	zoneA := affinityTo(topologyTerm(requires(zone, corev1.NodeSelectorOpIn, "a")))
	whole := mirror.NodeAffinityToMember(groups.ClusterID)
	label := hostpv.TopologiesOf(zoneA)[0].Label
	topology := mirror.NodeAffinityToTopologies(groups.ClusterID, []string{label})
	for name, c := range map[string]struct {
		member  mirror.Member
		leaf    *corev1.VolumeNodeAffinity
		promise *corev1.VolumeNodeAffinity // before it is fulfilled
		want    *corev1.VolumeNodeAffinity
		fulfill *corev1.VolumeNodeAffinity // defaults to want
	}{
		"a member without groups":       {member: mirrortest.Member, leaf: zoneA, want: whole},
		"a volume for all nodes":        {member: groups, want: whole},
		"a volume in a zone":            {member: groups, leaf: zoneA, want: topology},
		"a promise of this member":      {member: groups, leaf: zoneA, promise: whole, want: topology, fulfill: whole},
		"a promise that had a disk":     {member: groups, promise: topology, want: whole, fulfill: topology},
		"an affinity without a meaning": {member: groups, leaf: affinityTo(topologyTerm()), want: whole},
	} {
		t.Run(name, func(t *testing.T) {
			leaf := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{NodeAffinity: c.leaf}}
			leaf.Name, leaf.UID = "pvc-1", "leaf-uid"
			host := hostpv.TranslateVolume(leaf, &corev1.PersistentVolumeClaim{}, corev1.PersistentVolumeReclaimDelete, c.member)
			if diff := cmp.Diff(c.want, host.Spec.NodeAffinity); diff != "" {
				t.Errorf("host PV (-want +got):\n%s", diff)
			}
			if _, name, _, ours := hostpv.LeafOfHostVolume(host); !ours || name != leaf.Name {
				t.Errorf("LeafOfHostVolume: %q, %t", name, ours)
			}
			if c.fulfill == nil {
				c.fulfill = c.want
			}
			promise := hostpv.NewPromiseFor(&corev1.PersistentVolumeClaim{}, &storagev1.StorageClass{})
			promise.Spec.NodeAffinity = c.promise
			after := hostpv.FulfillPromise(hostpv.PromiseWithMember(promise, c.member, nil), leaf, corev1.PersistentVolumeReclaimDelete, c.member)
			if diff := cmp.Diff(c.fulfill, after.Spec.NodeAffinity); diff != "" {
				t.Errorf("promise (-want +got):\n%s", diff)
			}
			if _, name, _, ours := hostpv.LeafOfHostVolume(after); !ours || name != leaf.Name {
				t.Errorf("LeafOfHostVolume of the promise: %q, %t", name, ours)
			}
		})
	}
}
