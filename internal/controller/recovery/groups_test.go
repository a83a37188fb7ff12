package recovery

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
)

// groups divides the first member into groups. The scheduler selected group "a".
func groups(names ...string) func(*observed) {
	return func(o *observed) {
		o.Member.NodeGroups = []v1alpha1.NodeGroup{{Name: "rule"}}
		others := slices.DeleteFunc(o.Destinations, func(p placement.Candidate) bool { return p.Registration == "first" })
		o.Destinations = nil
		for _, name := range names {
			p := node("first", "10Gi")
			p.Node.Name = v1alpha1.GroupNodeName(name, here.NodeName)
			p.Node.Labels[v1alpha1.LabelNodeGroup] = name
			o.Destinations = append(o.Destinations, p)
		}
		o.Destinations = append(o.Destinations, others...)
		annotated(route.AnnSelectedNode, "a.kosmos-first")(o)
		o.Pods[0].Status.NominatedNodeName = "a.kosmos-first"
	}
}

func ofGroup(name string, change func(*corev1.Node)) func(*observed) {
	return func(o *observed) {
		for _, p := range o.Destinations {
			if p.Node.Labels[v1alpha1.LabelNodeGroup] == name {
				change(p.Node)
			}
		}
	}
}

func failedGroups(names ...string) []report.AttemptedMember {
	found := failed(slices.Repeat([]string{"first"}, len(names))...)
	for i, name := range names {
		found[i].Node = name + ".kosmos-first"
	}
	return found
}

func pinned(o *observed) {
	o.Claim.Source = &mirror.DataSource{Kind: "PersistentVolumeClaim", Name: "golden"}
	annotated(v1alpha1.AnnotationSteeredTo, "a.kosmos-first")(o)
	o.ClaimGroup[0] = *o.Claim
}

// inZone makes a volume reachable only from one group.
func inZone(group string) func(*observedClaim) {
	return func(c *observedClaim) {
		siblingBoundIn("id1")(c)
		c.Volume = &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-2"}, Spec: corev1.PersistentVolumeSpec{NodeAffinity: &corev1.VolumeNodeAffinity{
			Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: v1alpha1.LabelNodeGroup, Operator: corev1.NodeSelectorOpIn, Values: []string{group}}}}}}}}}
	}
}

// outcome describes a decision.
func outcome(d decision) string {
	attempted := func(t report.AttemptedMembers) string {
		var names []string
		for _, m := range t.Members {
			names = append(names, m.Name+"/"+m.Node)
		}
		return strings.Join(names, " ")
	}
	switch d := d.(type) {
	case moveClaims:
		return fmt.Sprintf("move %d to %s, tried %s", len(d.Claims), d.To.Name, attempted(d.Attempted))
	case freeClaims:
		return "free, tried " + attempted(d.Attempted)
	case recordNoCandidate:
		return "stay, tried " + attempted(d.Attempted)
	case nothing:
		return "nothing"
	}
	return fmt.Sprintf("%T", d)
}

// Another group of the same member comes before other members, if it may help.
func TestGroups(t *testing.T) {
	for name, tc := range map[string]struct {
		observed observed
		want     string
	}{
		"another group of the member":               {seen(groups("a", "b")), "move 1 to b.kosmos-first, tried first/a.kosmos-first"},
		"the Pod cannot be scheduled in the group":  {seen(groups("a", "b"), reason(v1alpha1.ReasonPodUnschedulable)), "move 1 to b.kosmos-first, tried first/a.kosmos-first"},
		"no capacity in the group":                  {seen(groups("a", "b"), reason(v1alpha1.ReasonOutOfSpace), waited), "move 1 to b.kosmos-first, tried first/a.kosmos-first"},
		"the member rejects the claim in any group": {seen(groups("a", "b"), reason(v1alpha1.ReasonRefusedByMember)), "move 1 to kosmos-third, tried first/"},
		"the leaf class binds immediately": {seen(groups("a", "b"), func(o *observed) {
			o.Claim.BindsImmediately = true
			o.ClaimGroup[0] = *o.Claim
		}), "move 1 to kosmos-third, tried first/"},
		"the other group is cordoned":           {seen(groups("a", "b"), ofGroup("b", cordoned)), "move 1 to kosmos-third, tried first/a.kosmos-first"},
		"the other group was tried":             {seen(groups("a", "b"), tried(report.AttemptedMembers{Members: failedGroups("b")})), "move 1 to kosmos-third, tried first/b.kosmos-first first/a.kosmos-first"},
		"three groups were tried":               {seen(groups("a", "b", "c", "d"), tried(report.AttemptedMembers{Members: failedGroups("b", "c")})), "move 1 to kosmos-third, tried first/b.kosmos-first first/c.kosmos-first first/a.kosmos-first"},
		"all were tried":                        {seen(groups("a", "b"), tried(report.AttemptedMembers{Members: append(failedGroups("b"), failed("second", "third")...)})), "free, tried first/b.kosmos-first second/ third/ first/a.kosmos-first"},
		"too early":                             {seen(groups("a", "b"), since(0)), "nothing"},
		"a volume may still be created":         {seen(groups("a", "b"), func(o *observed) { o.ClaimGroup[0].StillProvisioning = true }), "nothing"},
		"the Node of the group is gone":         {seen(groups("b"), stranded(timeout*2)), "move 1 to b.kosmos-first, tried first/a.kosmos-first"},
		"the source is in the member":           {seen(groups("a", "b"), pinned), "move 1 to b.kosmos-first, tried first/a.kosmos-first"},
		"the source, and only this group":       {seen(groups("a"), pinned), "stay, tried first/a.kosmos-first"},
		"the source, and the member rejects it": {seen(groups("a", "b"), pinned, reason(v1alpha1.ReasonRefusedByMember)), "nothing"},
		"both claims of the Pod go":             {seen(groups("a", "b"), sibling()), "move 2 to b.kosmos-first, tried first/a.kosmos-first"},
		"the other claim went to another group before": {seen(groups("a", "b"), sibling(func(c *observedClaim) {
			set(c.Root, route.AnnSelectedNode, "b.kosmos-first")
			set(c.Root, v1alpha1.AnnotationSteeredTo, "b.kosmos-first")
			set(c.Root, v1alpha1.AnnotationTried, fmt.Sprintf(`{"moved":%d}`, now.Unix()))
		})), "move 1 to b.kosmos-first, tried "},
		"the other claim has its volume in another group": {seen(groups("a", "b"), sibling(inZone("b"))), "move 1 to b.kosmos-first, tried "},
		"the other claim has its volume in this group":    {seen(groups("a", "b"), sibling(inZone("a"))), "nothing"},
		"no group reaches the other claim's volume":       {seen(groups("a", "b"), sibling(inZone("c"))), "nothing"},
	} {
		if got := outcome(tc.observed.decideReassignment()); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
