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
			Edits: []Edit{
				{volumeTable, "held, mayBeKnown, unheld}", "held, mayBeKnown, unheld, not(terminating)}"},
				{volumeTable, "not(leafRetain), either(retained, freed)}", "not(leafRetain), not(terminating), either(retained, freed)}"},
				{volumeTable, "{not(mirrored), stamped, unkept}", "{not(mirrored), stamped, unkept, not(terminating)}"},
				{volumeTable, "provisioned, unheld}", "provisioned, unheld, not(terminating)}"},
			},
			Caught: []string{"I6"},
		},
		{
			Name: "abandons-at-delete", Class: "a volume that is abandoned while it is destroyed stays at Delete",
			Edits:  []Edit{{volumeTable, "{not(mirrored), stamped, unkept}", "{not(mirrored), stamped, unkept, mirrored}"}},
			Caught: []string{"I6"},
		},
		{
			Name: "silent-while-deleted", Class: "a claim whose volume is being deleted before it is bound is Pending, and no reason is reported",
			Edits:  []Edit{{rootPVCDecide, "return pv != nil && pv.DeletionTimestamp != nil", "return false && pv != nil"}},
			Caught: []string{"I6"},
		},
		{
			Name: "only-lost", Class: "a leaf claim stays that names a volume which went before they were bound",
			Edits:  []Edit{{volumeTable, "not(hasLeaf), not(claimBound)}, step: DeleteLost", "not(hasLeaf), claimLost}, step: DeleteLost"}},
			Caught: []string{"I6"},
		},
		{
			Name: "two-mirrors", Class: "a second volume is mirrored for a claim, while the cache of host PVs lags",
			Edits:  []Edit{{leafPVAct, "	if s.Root.Spec.VolumeName == \"\" {\n		other", "	if s.Root.Spec.VolumeName == \"never\" {\n		other"}},
			Caught: []string{"I3"},
		},
		{
			Name: "freed-at-delete", Class: "a volume that is freed while it is destroyed stays at Delete",
			Edits:  []Edit{{volumeSnapshot, "	if s.Host.Spec.ClaimRef == nil {\n		return s.Host.Status.Phase", "	if s.Host != nil {\n		return false\n	}\n	if s.Host.Spec.ClaimRef == nil {\n		return s.Host.Status.Phase"}},
			Caught: []string{"I6"},
		},
	}
}
