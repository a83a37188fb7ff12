package mutation

import "slices"

// Model are defects that the model of a claim's life (test/model) has found, or that its design
// named, and those of All that it can show.
func Model() []Mutation {
	shared := []string{"other-uid-unmirrored", "failed-is-not-ended", "absence-deletes", "forgetful-deletion"}
	return append(modelled(), slices.DeleteFunc(All(), func(m Mutation) bool { return !slices.Contains(shared, m.Name) })...)
}

func modelled() []Mutation {
	return []Mutation{
		{
			Name: "passes-over-deleted", Class: "a leaf PV that is being deleted is not held",
			Edits:  []Edit{{leafPVDecide, "	case o.root == nil:\n		return o.withoutRoot()\n	}\n	if why", "	case o.leaf.DeletionTimestamp != nil:\n		return nothing{}\n	case o.root == nil:\n		return o.withoutRoot()\n	}\n	if why"}},
			Caught: []string{"I6"},
		},
		{
			Name: "abandons-at-delete", Class: "a volume that is abandoned while it is destroyed stays at Delete",
			Edits:  []Edit{{leafPVDecide, "return o.keep(orphan{})", "return orphan{}"}},
			Caught: []string{"I6"},
		},
		{
			Name: "undoes", Class: "leaf_pv holds what root_pv destroys, while the cache of claims lags",
			Edits:  []Edit{{leafPVDecide, "(mirror.Releasing(o.host) || mirror.Ended(o.host))", "mirror.Releasing(o.host)"}},
			Caught: []string{"I5"},
		},
		{
			Name: "silent-while-deleted", Class: "a claim whose volume is being deleted before it is bound is Pending, and no reason is reported",
			Edits:  []Edit{{rootPVCDecide, "return pv != nil && pv.DeletionTimestamp != nil", "return false && pv != nil"}},
			Caught: []string{"I6"},
		},
		{
			Name: "only-lost", Class: "a leaf claim stays that names a volume which went before they were bound",
			Edits:  []Edit{{rootPVCDecide, "o.leaf.Status.Phase != corev1.ClaimBound && len(o.mirrors) == 0", "o.leaf.Status.Phase == corev1.ClaimLost && len(o.mirrors) == 0"}},
			Caught: []string{"I6"},
		},
		{
			Name: "two-mirrors", Class: "a second volume is mirrored for a claim, while the cache of host PVs lags",
			Edits:  []Edit{{"internal/controller/leafpv/act.go", "	if o.root.Spec.VolumeName == \"\" {\n		other", "	if o.root.Spec.VolumeName == \"never\" {\n		other"}},
			Caught: []string{"I3"},
		},
		{
			Name: "freed-at-delete", Class: "a volume that is freed while it is destroyed stays at Delete",
			Edits:  []Edit{{leafPVDecide, "	ref := o.host.Spec.ClaimRef\n	if ref == nil {", "	ref := o.host.Spec.ClaimRef\n	if ref != nil || ref == nil {\n		return false\n	}\n	if ref == nil {"}},
			Caught: []string{"I6"},
		},
	}
}
