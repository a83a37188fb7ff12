package mutation

// The files of the command `kubectl xylem move` that the mutations edit.
const (
	moveRun    = "internal/cli/move/move.go"
	moveSwap   = "internal/cli/move/swap.go"
	moveUndo   = "internal/cli/move/undo.go"
	moveDelete = "internal/cli/move/destroy.go"
	moveVolume = "internal/cli/move/objects/volumes.go"
	moveCopy   = "internal/cli/move/objects/copy.go"

	moveManifests = "internal/cli/move/objects/manifests.go"
)

// Moves returns defects of `kubectl xylem move`, which test/model/moves finds.
func Moves() []Mutation {
	return []Mutation{
		{
			Name: "move-forgets-restore", Class: "a move continues after a restore of the host, and overwrites the newest data",
			Edits:  []Edit{{moveRun, "if err == nil && restored {", "if err == nil && restored && r.Used {"}},
			Caught: []string{"the data is lost"}, Check: "TestRestores", Full: true,
		},
		{
			Name: "move-destroys-after-restore", Class: "an old disk is destroyed, although a restore of the host has bound the claim to it again",
			Edits:  []Edit{{moveDelete, "		case restored:", "		case restored && pv.Annotations == nil:"}},
			Caught: []string{"the data is lost"}, Check: "TestRestores", Full: true,
		},
		{
			Name: "move-keeps-policy", Class: "the old disk is destroyed with its claim, before the claim is bound to the copy",
			Edits:  []Edit{{moveSwap, "	return r.storage.Retain(ctx, r.Record, r.Old, r.Marks(r.Old))", "	return nil"}},
			Caught: []string{"leaves volume", "neither the move nor its undo succeeds", "the data is lost"}, Check: "TestCheck",
		},
		{
			Name: "move-leaves-retain", Class: "the claim's volume keeps policy Retain after the move, so that its disk stays when the claim is deleted",
			Edits:  []Edit{{moveVolume, "		if r.Retains(pv) {", "		if r.Retains(pv) && pv.Spec.ClaimRef.Name != w.claim {"}},
			Caught: []string{"with policy Retain"}, Check: "TestCheck",
		},
		{
			Name: "move-compares-once", Class: "a Pod writes to the old disk after it was compared, and the claim gets the older copy",
			Edits:  []Edit{{moveSwap, "	if sum != r.Sum {", "	if sum == \"\" {"}},
			Caught: []string{"the user wrote", "not \"a"}, Check: "TestCheck", Full: true,
		},
		{
			Name: "move-undo-destroys-used", Class: "an undo destroys the copy that Pods have written to",
			Edits:  []Edit{{moveUndo, "		if r.Used || restored || gone {", "		if restored || gone {"}},
			Caught: []string{"the data is lost", "leaves volume"}, Check: "TestCheck", Full: true,
		},
		{
			Name: "move-deletes-last-disk", Class: "the old disk is destroyed, although the member's admin has destroyed the copy",
			Edits:  []Edit{{moveDelete, "	if why == \"\" {", "	if why != \"-\" {"}},
			Caught: []string{"the data is lost"}, Check: "TestCheck", Full: true,
		},
		{
			Name: "move-undo-stuck", Class: "after the user has deleted the claim, neither the move nor its undo ends",
			Edits:  []Edit{{moveUndo, "errors.As(err, &gone) && !r.Used {", "errors.As(err, &gone) && !r.Used && r.Phase == \"\" {"}},
			Caught: []string{"neither the move nor its undo succeeds"}, Check: "TestCheck", Full: true,
		},
		{
			Name: "move-binds-existing", Class: "the copy's claim is bound to a volume that an admin of the host offers to any claim",
			Edits:  []Edit{{moveManifests, "\tspec.Selector = pvc.ContradictorySelector()", "\tif spec.Selector = pvc.ContradictorySelector(); r.Run != \"-\" {\n\t\tspec.Selector = nil\n\t}"}},
			Caught: []string{"leaves the volume that the host's admin offers"}, Check: "TestExisting",
		},
		{
			Name: "move-overwrites-existing", Class: "the copy overwrites a volume that the member's admin offered to any claim",
			Edits:  []Edit{{moveCopy, "\tif !hostpv.WasProvisionedFor(pv, claim) {", "\tif !hostpv.WasProvisionedFor(pv, claim) && r.Sum != \"\" {"}},
			Caught: []string{"the data is lost"}, Check: "TestExisting",
		},
		{
			Name: "move-undo-destroys-existing", Class: "an undo destroys an existing volume that the copy's claim was bound to",
			Edits:  []Edit{{moveCopy, "pv.UID == r.New.UID || hostpv.WasProvisionedFor", "pv.UID != r.New.UID || hostpv.WasProvisionedFor"}},
			Caught: []string{"the data is lost"}, Check: "TestExisting",
		},
	}
}
