package mutation

import "slices"

// Model returns the defects that test/model, or its design, found, and those in All that the model
// can also find.
func Model() []Mutation {
	shared := []string{"other-uid-unmirrored", "failed-is-not-ended", "absence-deletes", "forgetful-deletion"}
	return slices.Concat(modelled(), ofOtherChecks(), ofClones(), ofNeeds(), ofPromises(), slices.DeleteFunc(All(), func(m Mutation) bool { return !slices.Contains(shared, m.Name) }))
}

// dropsSource creates leaf claims without their roots' data sources.
var dropsSource = Edit{mirrorClaim, "\tleaf.Spec.StorageClassName = fields.ClonePointer(class)", "\tleaf.Spec.StorageClassName = fields.ClonePointer(class)\n\tleaf.Spec.DataSource, leaf.Spec.DataSourceRef = nil, nil"}

// ofClones returns the defects that affect claims with a data source.
func ofClones() []Mutation {
	return []Mutation{
		{
			Name: "empty-copy", Class: "a claim with a data source gets an empty disk: the source is dropped, and neither of the two checks detects it", Check: "TestClones",
			Edits: []Edit{
				dropsSource,
				{"internal/controller/rootpvc/source.go", "if mirror.SameDataSource(o.Root, created) {", "if true {"},
				{volumeTable, "not(hasHostVolume), leafClaimHoldsIt, dataSourceDiffers}", "not(hasHostVolume), leafClaimHoldsIt, dataSourceDiffers, hasHostVolume}"},
			},
			Caught: []string{"empty disk"},
		},
		{
			Name: "copies-successor", Class: "a claim is created from another object that now has the source's name", Check: "TestClones",
			Edits: []Edit{
				{"internal/placement/copysource.go", "recorded && from.UID != record.UID", "recorded && from.UID == \"\" && record.UID != \"\""},
				{volumeSource, "record != from.At.DataSourceRecord", "record.ClusterID != from.At.ClusterID"},
				{"internal/proof/source.go", "record != at.DataSourceRecord", "record.ClusterID != at.ClusterID"},
			},
			Caught: []string{"data that is not its source's"},
		},
		{
			Name: "copies-successor-late", Class: "a claim is created from another object that took the source's name after the leaf claim was created", Check: "TestClones",
			Edits: []Edit{
				{volumeSource, "	return was != \"\" && (!found", "	return was == \"never\" && (!found"},
				{volumeSource, "|| s.SourceNameReused && (", "|| s.SourceNameReused && s.Root == nil && ("},
			},
			Caught: []string{"data that is not its source's"},
		},
	}
}

// ofNeeds returns defects by which one feature destroys what another one needs.
func ofNeeds() []Mutation {
	return []Mutation{
		{
			Name: "needs-no-snapshot", Class: "a disk is released with its last Pod while a VolumeSnapshot of it is still to be taken", Check: "TestNeeds",
			Edits:  []Edit{{"internal/proof/needs.go", "findForVolume: Prover.findSnapshotsToTake,", "findForVolume: nil,"}},
			Caught: []string{"a VolumeSnapshot of it is still to be taken"},
		},
		{
			Name: "needs-no-clone", Class: "a disk is destroyed with its claim while a claim that is Bound to a promise is still to be cloned from it", Check: "TestNeeds",
			Edits:  []Edit{{"internal/index/needs.go", "if volume == nil || hostpv.IsUnfulfilledPromise(volume) {", "if volume == nil || hostpv.IsUnfulfilledPromise(volume) && volume == nil {"}},
			Caught: []string{"still to be cloned from it"},
		},
		{
			Name: "needs-unseen", Class: "a volume that is being destroyed is not retained again when a claim that is to be cloned from it is bound to its promise", Check: "TestNeeds",
			Edits:  []Edit{{"internal/controller/leafpv/controller.go", "recorded && record.ClusterID == r.ClusterID && source.IsClaim()", "recorded && record.ClusterID == r.HostID && source.IsClaim()"}},
			Caught: []string{"leaf_pv has a step, and nothing enqueues it"},
		},
		{
			Name: "backup-not-marked", Class: "a disk that a backup tool has filled is destroyed, because the leaf claim has Xylem's stamp", Check: "TestNeeds",
			Edits:  []Edit{{mirrorOrigin, "\tif StampedRootUID(leaf) != \"\" && !slices", "\tif StampedRootUID(leaf) == \"-\" && !slices"}},
			Caught: []string{"a backup tool may have filled it"},
		},
		{
			Name: "backup-of-managed-fields", Class: "a disk is destroyed that a backup tool has filled, because the tool has also written the managed fields of its backup", Check: "TestNeeds",
			Edits:  []Edit{backupOfManagedFields},
			Caught: []string{"a backup tool may have filled it"},
		},
		{
			Name: "backup-of-kept-root", Class: "the volume of a leaf claim from a backup is destroyed, although a host PV of the same root with another volume is kept. The managed fields do not show the backup", Check: "TestNeeds",
			Edits: []Edit{backupOfManagedFields,
				{proofMirrored, "|| root != \"\" && rootUIDOf(pv) == root &&", "|| root == \"-\" && rootUIDOf(pv) == root &&"}},
			Caught: []string{"a host PV of its root keeps another volume"},
		},
		{
			Name: "needs-no-selector", Class: "the claim of a move's copy is bound to a volume that an admin of the host offers to any claim", Check: "TestNeeds",
			Edits:  []Edit{{moveManifests, "\tspec.Selector = pvc.ContradictorySelector()", "\tif spec.Selector = pvc.ContradictorySelector(); r.Run != \"-\" {\n\t\tspec.Selector = nil\n\t}"}},
			Caught: []string{"copy is bound to a volume that existed before"},
		},
		{
			Name: "needs-no-check-of-copy", Class: "a move overwrites a volume that the member has bound to the leaf claim of the copy", Check: "TestNeeds",
			Edits:  []Edit{{moveCopy, "\tif !hostpv.WasProvisionedFor(pv, claim) {", "\tif !hostpv.WasProvisionedFor(pv, claim) && r.Sum != \"\" {"}},
			Caught: []string{"a move overwrites a volume"},
		},
		{
			Name: "needs-wrong-provisioned", Class: "a host PV records that its volume was provisioned for its claim, although the member has bound an existing volume", Check: "TestNeeds",
			Edits:  []Edit{{"internal/mirror/hostpv/volume.go", "		!metav1.HasAnnotation(leaf.ObjectMeta, volumehelpers.AnnBoundByController) &&", "\t\t(leaf.HostVolumeName != \"\" || !metav1.HasAnnotation(leaf.ObjectMeta, volumehelpers.AnnBoundByController)) &&"}},
			Caught: []string{"a move overwrites a volume"},
		},
		{
			Name: "needs-no-retain", Class: "the old disk, or the copy, is destroyed with its claim during a move", Check: "TestNeeds",
			Edits:  []Edit{{moveManifests, "	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain\n", ""}},
			Caught: []string{"a move has not ended"},
		},
	}
}

// backupOfManagedFields makes the age of managed fields irrelevant.
var backupOfManagedFields = Edit{mirrorOrigin, "!entry.Time.Add(maxAdmissionTime).Before(created.Time)", "!entry.Time.Add(maxAdmissionTime).Before(entry.Time.Time)"}

func modelled() []Mutation {
	return []Mutation{
		{
			Name: "passes-over-deleted", Class: "a leaf PV that is being deleted is not set to Retain",
			Edits: []Edit{
				{volumeTable, "leafClaimHoldsIt, mayHaveBeenMirrored, leafPVNotStampedAndRetained}", "leafClaimHoldsIt, mayHaveBeenMirrored, leafPVNotStampedAndRetained, not(leafPVTerminating)}"},
				{volumeTable, "not(leafPVRetainedOrGone), either(policyRetainsIt, hostPVFreedForAnotherClaim, otherLeafClaimHoldsIt, clonesArePending)}", "not(leafPVRetainedOrGone), not(leafPVTerminating), either(policyRetainsIt, hostPVFreedForAnotherClaim, otherLeafClaimHoldsIt, clonesArePending)}"},
				{volumeTable, "{not(hasHostVolume), leafPVStamped, leafPVNotSecured}", "{not(hasHostVolume), leafPVStamped, leafPVNotSecured, not(leafPVTerminating)}"},
				{volumeTable, "leafClaimAndLeafPVBound, leafPVNotStampedAndRetained}", "leafClaimAndLeafPVBound, leafPVNotStampedAndRetained, not(leafPVTerminating)}"},
			},
			Caught: []string{"I6"},
		},
		{
			Name: "proves-too-early", Class: "the leaf claim is deleted with the proof of the host PV that was for the step before, although an admin may have set Retain since",
			Edits: []Edit{
				{rootPVAct, "\tif e.Host, proven, err = r.NewProver().ProveHostReleased(ctx, s.Host); err", "\tearlier := e.Host\n\tif e.Host, proven, err = r.NewProver().ProveHostReleased(ctx, s.Host); earlier != (proof.ProveHostReleased{}) {\n\t\te.Host, proven, err = earlier, true, nil\n\t}\n\tif err"},
				{"internal/proof/evidence.go", "return DestroyingVolume{Root: RootGone{e.Root.witness.ForOneMoreWrite()}}", "return DestroyingVolume{Root: ProveRootGone{e.Root.ForOneMoreWrite()}, Host: HostReleased{hostVolume{e.Host.ForOneMoreWrite(), e.Host.pv}}}"},
				{"internal/proof/evidence.go", "return SpendProofs(e.Root.witness, e.Leaf.witness, e.Host.witness)", "return SpendProofs(e.Root.witness, e.Host.witness)"},
			},
			Caught: []string{"I2: [^\n]*by the second write of a reconcile"},
		},
		{
			Name: "abandons-at-delete", Class: "a volume that is abandoned while it is being destroyed keeps policy Delete",
			Edits:  []Edit{{volumeTable, "{not(hasHostVolume), leafPVStamped, leafPVNotSecured}", "{not(hasHostVolume), leafPVStamped, leafPVNotSecured, hasHostVolume}"}},
			Caught: []string{"I6"},
		},
		{
			Name: "silent-while-deleted", Class: "a claim stays Pending without a reason if its volume is deleted before the claim is bound",
			Edits:  []Edit{{volumeFacts, "return pv != nil && pv.DeletionTimestamp != nil", "return false && pv != nil"}},
			Caught: []string{"I6"},
		},
		{
			Name: "only-lost", Class: "a leaf claim is not deleted if its volume was deleted before they were bound",
			Edits:  []Edit{{volumeTable, "not(hasLeafPV), not(leafClaimBound)}, Step: DeleteLost", "not(hasLeafPV), leafClaimLost}, Step: DeleteLost"}},
			Caught: []string{"I6"}, Full: true,
		},
		{
			Name: "two-mirrors", Class: "a second volume is mirrored for a claim while the cache of host PVs is stale",
			Edits:  []Edit{{leafPVAct, "	if s.Root.Spec.VolumeName == \"\" {\n		other", "\tif s.HostWriter.Spec.VolumeName == \"never\" {\n\t\tother"}},
			Caught: []string{"I3"}, Full: true,
		},
		{
			Name: "freed-at-delete", Class: "a volume that is freed while it is being destroyed keeps policy Delete",
			Edits:  []Edit{{volumeObserved, "	if s.Host.Spec.ClaimRef == nil {\n		return s.Host.Status.Phase", "	if s.Host != nil {\n		return false\n	}\n	if s.Host.Spec.ClaimRef == nil {\n		return s.Host.Status.Phase"}},
			Caught: []string{"I6"},
		},
		{
			Name: "calls-it-surplus", Class: "F5: a volume is reported as surplus while root_pvc is about to place its claim here",
			Edits:  []Edit{{volumeOwner, "\tif placed := s.PlacedClusterID(); placed != \"\" && placed != s.Member.ClusterID {\n\t\tif s.PlacedRegistration", "\tif placed := s.PlacedClusterID(); placed != s.Member.ClusterID {\n\t\tif s.PlacedRegistration"}},
			Caught: []string{"reported as surplus"},
		},
		{
			Name: "goes-by-names", Class: "F6: a leaf PV that was re-created with the same name is treated as the mirrored one",
			Edits:  []Edit{{volumeObserve, "	case leaf.UID == s.UID:\n", "	case leaf.UID == s.UID || s.Host != nil:\n"}},
			Caught: []string{"I2", "I6"}, Full: true,
		},
		{
			Name: "forgets-the-lost-claim", Class: "N7: a volume without a stamp is destroyed as never mirrored, although the host may have lost the volume's claim in a restore",
			Edits: []Edit{
				{volumeObserved, "len(s.EarlierHosts) > 0 || s.MayBeRestored || s.RootMayBeLost)", "len(s.EarlierHosts) > 0 || s.MayBeRestored)"},
				{rootPVCDelete, "case restores.MayBeFromBackup(o.Leaf), restores.MayLackRoot(o.Leaf):", "case restores.MayBeFromBackup(o.MemberWriter):"},
				{proofMirrored, "restored: p.MayBeRestored(claim) || p.MayLackRoot(claim)}", "restored: p.MayBeRestored(claim)}"},
			},
			Caught: []string{"I2"}, Full: true,
		},
		{
			Name: "wants-its-own-stamp", Class: "F7: a freed volume is not destroyed if its next claim is deleted before the volume is stamped for it",
			Edits: []Edit{{volumeObserved, "\n\t\t(!s.StampedForOtherRoot() || hostpv.IsReleasedOrFailed(s.Host) && s.Leaf.Status.Phase != corev1.VolumeBound)", "\n\t\t!s.StampedForOtherRoot()"}},
			Check: "TestTwoNames", Caught: []string{"I6"}, Full: true,
		},
		{
			Name: "withdraws-what-is-mirrored", Class: "N1: a mirrored volume is lost when its member is restored to a state in which the leaf claim and its PV were not bound yet",
			Edits: []Edit{
				{proofMirrored, "	restored := p.MayBeRestored(claim)\n", "	restored := false\n"},
				{proofMirrored, "\t\tif leaf == nil || hostpv.ClaimRefNamesClaim(leaf, claim) {\n", "		if leaf == nil {\n"},
				{proofMirrored, "\t\tif by != nil && !isDeletedWithClaim(by, origin.UID) {\n", "\t\tif by != nil && by.HostVolumeName == \"\" {\n"},
			},
			Caught: []string{"I2"},
		},
	}
}

// ofOtherChecks returns the defects that the model's other checks find: the checks with more names
// and restores, and the checks of wake-ups and confluence.
func ofOtherChecks() []Mutation {
	return []Mutation{
		{
			Name: "forgets-the-restore", Class: "N6: a volume that was abandoned, or whose retained host PV was deleted, is destroyed as never mirrored after its member is restored to a state before the stamp",
			Edits: []Edit{
				{volumeObserved, "len(s.EarlierHosts) > 0 || s.MayBeRestored || s.RootMayBeLost)", "len(s.EarlierHosts) > 0 || s.RootMayBeLost)"},
				{rootPVCDelete, "case restores.MayBeFromBackup(o.Leaf), restores.MayLackRoot(o.Leaf):", "case restores.MayLackRoot(o.MemberWriter):"},
				{proofMirrored, "restored: p.MayBeRestored(claim) || p.MayLackRoot(claim)}", "restored: p.MayLackRoot(claim)}"},
			},
			Check: "TestRestores", Caught: []string{"I2"}, Full: true,
		},
		{
			Name: "deaf-to-phases", Class: "leaf_pv is not enqueued when a leaf claim's phase is set, so the claim's volume is not mirrored",
			Edits: []Edit{{"internal/controller/leafpv/controller.go", "claimToVolume, route.ConcernsPredicate(route.LeafClaimChanged)", "claimToVolume, route.ConcernsPredicate(route.ClaimChanged)"}},
			Check: "TestWakeups", Caught: []string{"nothing enqueues it"},
		},
		{
			Name: "places-beside-another", Class: "a claim gets a second volume in another member, because a restored host lost the record of its placement",
			Edits: []Edit{{"internal/controller/rootpvc/act.go", "\tif !s.PlacementMayBeForgotten() {\n", "\tif !s.PlacementMayBeForgotten() || s.Claim == nil {\n"}},
			Check: "TestMembers", Caught: []string{"I3"}, Full: true,
		},
		{
			Name: "left-at-delete", Class: "a volume with policy Delete is never destroyed: an earlier claim's leaf claim still holds it, and the claim with another name to which it was assigned was deleted",
			Edits: []Edit{{volumeTable, "either(policyRetainsIt, hostPVFreedForAnotherClaim, otherLeafClaimHoldsIt, clonesArePending)}, Step: SetRetain", "either(policyRetainsIt, hostPVFreedForAnotherClaim, clonesArePending)}, Step: SetRetain"}},
			Check: "TestTwoNames", Caught: []string{"I6"}, Full: true,
		},
		{
			Name: "notes-its-own-policy", Class: "a volume whose leaf claim was lost is retained forever, because the policy that Xylem set is recorded as the member's",
			Edits: []Edit{{desiredVolume, "\t\tapplyStamp(s, after, s.Origin)\n\t\tafter.Spec.ClaimRef", "\t\tapplyStamp(s, after, s.Origin)\n\t\tafter.Annotations[v1alpha1.AnnotationReclaimPolicy] = string(s.Leaf.Spec.PersistentVolumeReclaimPolicy)\n\t\tafter.Spec.ClaimRef"}},
			Check: "TestConfluence", Caught: []string{"the end depends", "other ends"},
		},
		{
			Name: "silent-while-lost", Class: "a claim stays Pending without a reason if the PV that was provisioned for it is gone before the host has a PV",
			Edits: []Edit{{volumeFacts, "return s.LeafClaim.Status.Phase == corev1.ClaimLost && !hostpv.ClaimRefHasUIDOf(", "return false && !hostpv.ClaimRefHasUIDOf("}},
			Check: "TestEdits", Caught: []string{"I6"},
		},
		{
			Name: "waits-for-each-other", Class: "after a user removed the annotation placed-in and the host PV, root_pvc waits for leaf_pv to re-create the PV, and leaf_pv waits for root_pvc to place the claim",
			Edits: []Edit{{claimTable, "[]fact{rootNamesMirrorOfLeafClaim, either(rootPlaced, rootBoundOutsideMember)}, Owner: RootPVC, Until: \"the host binds", "[]fact{rootNamesMirrorOfLeafClaim}, Owner: RootPVC, Until: \"the host binds"}},
			Check: "TestEdits", Caught: []string{"I6"},
		},
		{
			Name: "trusts-the-claimref", Class: "a claim stays Pending without a reason if somebody removed the claimRef of its host PV",
			Edits: []Edit{{volumeFacts, "return s.Placement.Diverted != nil })", "return false })"}},
			Check: "TestEdits", Caught: []string{"I6"},
		},
	}
}

// ofPromises returns the defects that affect promise mode.
func ofPromises() []Mutation {
	return []Mutation{
		{
			Name: "mirrors-beside-its-promise", Class: "a host that was restored to a state before a claim was bound to its promise gets a second PV for the claim",
			Edits: []Edit{{volumeObserved, "	unbound := s.Root.Spec.VolumeName == \"\"\n", "	unbound := false\n"}},
			Check: "TestPromises", Caught: []string{"I3"},
		},
		{
			Name: "releases-what-is-retained", Class: "the disk of a promise is released with its last Pod although an admin has set the promise to Retain",
			Edits: []Edit{
				{promiseTable, "either(not(mustBeDestroyed), copyStillToBeCreated), either(not(leafPVTerminating), leafClaimNamesIt)}, Step: SetRetain", "copyStillToBeCreated, either(not(leafPVTerminating), leafClaimNamesIt)}, Step: SetRetain"},
				{"internal/proof/evidence.go", "e.Promise.pv.Spec.ClaimRef, e.Promise.pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete", "e.Promise.pv.Spec.ClaimRef, true"},
			},
			Check: "TestPromises", Caught: []string{"I2"}, Full: true,
		},
	}
}
