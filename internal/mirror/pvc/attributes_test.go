package pvc

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/mirror/mirrortest"
)

// classed returns a bound leaf claim that names a class and records a host class for it.
func classed(member, host string) *corev1.PersistentVolumeClaim {
	leaf := ClaimWithAttributesClass(mirrortest.NewRootClaim(corev1.PersistentVolumeClaimSpec{}), member, host)
	leaf.Status.Phase = corev1.ClaimBound
	return leaf
}

func named(class string) *string {
	if class == "" {
		return nil
	}
	return &class
}

func TestAttributesOf(t *testing.T) {
	for name, tc := range map[string]struct {
		root, leaf, noted, applied string
		phase                      corev1.PersistentVolumeClaimPhase
		want                       AttributesClassChange
	}{
		"none":                             {},
		"the mapped class, with a record":  {root: "gold", leaf: "m-gold", noted: "gold"},
		"the same class, without a record": {root: "gold", leaf: "gold"},
		"a class instead of none":          {root: "gold", want: AttributesChange},
		"another class":                    {root: "silver", leaf: "m-gold", noted: "gold", applied: "m-gold", want: AttributesChange},
		"another class that maps to the same member class": {root: "lead", leaf: "m-gold", noted: "gold", want: AttributesChange},
		"a user of the member chose another class":         {root: "gold", leaf: "m-lead", want: AttributesChange},
		"another class, but the claim is not bound yet":    {root: "silver", leaf: "m-gold", noted: "gold", phase: corev1.ClaimPending},
		"another class, but the claim is lost":             {root: "silver", leaf: "m-gold", noted: "gold", phase: corev1.ClaimLost},
		"a class removed before it was applied":            {leaf: "m-gold", noted: "gold", want: AttributesChange},
		"a class removed after it was applied":             {leaf: "m-gold", noted: "gold", applied: "m-gold", want: AttributesFixed},
	} {
		t.Run(name, func(t *testing.T) {
			root, leaf := mirrortest.NewRootClaim(corev1.PersistentVolumeClaimSpec{VolumeAttributesClassName: named(tc.root)}), classed("", "")
			if tc.noted != "" {
				leaf = classed(tc.leaf, tc.noted)
			}
			leaf.Spec.VolumeAttributesClassName, leaf.Status.CurrentVolumeAttributesClassName = named(tc.leaf), named(tc.applied)
			if tc.phase != "" {
				leaf.Status.Phase = tc.phase
			}
			if got := AttributesClassChangeOf(root, leaf); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// The host's quotas count all class names of a claim. The status has the host's names during a
// change, after a failed change, and afterwards.
func TestStatusHasTheHostsNames(t *testing.T) {
	leaf := classed("m-gold", "gold")
	leaf.Status.CurrentVolumeAttributesClassName = named("m-gold")
	changing := ClaimWithAttributesClass(leaf, "m-silver", "silver")
	changing.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: "m-silver", Status: corev1.PersistentVolumeClaimModifyVolumeInfeasible}
	back := ClaimWithAttributesClass(changing, "m-gold", "gold")
	settled := back.DeepCopy()
	settled.Status.ModifyVolumeStatus = nil
	over := ClaimWithAttributesClass(settled, "m-gold", "gold")
	strange := leaf.DeepCopy()
	strange.Status.CurrentVolumeAttributesClassName = named("m-lead")
	broken := leaf.DeepCopy()
	broken.Annotations["xylem.io/attributes-classes"] = "["
	none := ClaimWithAttributesClass(classed("m-gold", "gold"), "", "")
	for name, tc := range map[string]struct {
		leaf            *corev1.PersistentVolumeClaim
		current, target string
	}{
		"unchanged":                             {leaf, "gold", ""},
		"changing":                              {changing, "gold", "silver"},
		"canceled":                              {back, "gold", "silver"},
		"the canceled change has ended":         {over, "gold", ""},
		"a class that a user of the member set": {strange, "m-lead", ""},
		"records that do not parse":             {broken, "m-gold", ""},
		"canceled, without a previous class":    {none, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			root := mirrortest.NewRootClaim(corev1.PersistentVolumeClaimSpec{})
			root.Status.Phase = corev1.ClaimBound
			got := TranslateClaimStatus(root, tc.leaf)
			if diff := cmp.Diff(named(tc.current), got.CurrentVolumeAttributesClassName); diff != "" {
				t.Errorf("current -want +got:\n%s", diff)
			}
			if target := targetAttributesClass(&got); target != tc.target {
				t.Errorf("target is %q, want %q", target, tc.target)
			}
		})
	}
	if none.Annotations["xylem.io/attributes-classes"] != "" || none.Spec.VolumeAttributesClassName != nil {
		t.Errorf("annotations are %v, spec %v; want no class and no record of one", none.Annotations, none.Spec)
	}
	if raw := over.Annotations["xylem.io/attributes-classes"]; raw != `{"m-gold":"gold"}` {
		t.Errorf("the records are %s, want only the current class", raw)
	}
	if leaf.Annotations["xylem.io/attributes-classes"] != `{"m-gold":"gold"}` {
		t.Error("the function changed its argument")
	}
	hostile := leaf.DeepCopy()
	hostile.Annotations["xylem.io/attributes-classes"] = `{"m-gold":"` + strings.Repeat("x", 10_000) + `"}`
	if got := HostAttributesClass(hostile, "m-gold"); len(got) > classNameLimit+len("…") {
		t.Errorf("the member's class name takes %d bytes in the status, want at most %d and an ellipsis", len(got), classNameLimit)
	}
}
