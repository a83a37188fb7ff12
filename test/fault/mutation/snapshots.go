package mutation

import "slices"

// Snapshots returns the defects that test/model/snapshots found, and those in All that it can also
// find.
func Snapshots() []Mutation {
	shared := []string{
		"snapshot-unsecured", "snapshot-overrules-member", "snapshot-overrules-host", "snapshot-host-first", "snapshot-abandoned-destroyed",
	}
	return slices.Concat(ofSnapshotModel(), slices.DeleteFunc(ofSnapshots(), func(m Mutation) bool { return !slices.Contains(shared, m.Name) }))
}

func ofSnapshotModel() []Mutation {
	return []Mutation{
		{
			Name: "snapshot-needs-leaf", Class: "a leaf content can no longer be protected, and nothing reports it, if its leaf was deleted before the content was protected",
			Edits:  []Edit{{"internal/guarded/snapshot.go", "	recorded := host != nil && ", "	recorded := false && host != nil && "}},
			Caught: []string{"an error of leaf_snapshot"},
		},
		{
			Name: "snapshot-forgets-promises", Class: "I2: a snapshot is destroyed although a claim that is Bound to a promise must still be restored from it",
			Edits:  []Edit{{"internal/index/needs.go", "!= source.IndexKey() || !recorded || ", "!= source.IndexKey() || recorded || "}},
			Caught: []string{"I2: data is destroyed from which a claim must still be restored"},
		},
		{
			Name: "snapshot-silent-end", Class: "the host content is deleted before the snapshot is taken: the snapshot is never ready, and nothing reports it",
			Edits:  []Edit{{snapshotTable, "{Phase: Ending, When: []fact{nothingTakenYet, hostContentDeleting}", "{Phase: Ending, When: []fact{nothingTakenYet, hostContentDeleting, not(hostContentExists)}"}},
			Caught: []string{"the VolumeSnapshot is not ready"},
		},
		{
			Name: "snapshot-exposed", Class: "I2: a leaf content that the member's admin sets to Delete keeps that policy while the host content, or only its VolumeSnapshot, is being deleted",
			Edits:  []Edit{{snapshotTable, "{Phase: Holding, When: []fact{leafContentExists, snapshotterHasBegun, not(leafContentSecured)}", "{Phase: Holding, When: []fact{leafContentExists, snapshotterHasBegun, not(leafContentSecured), not(hostContentDeleting), not(rootEnded)}"}},
			Caught: []string{"a leaf content that must be kept has policy Delete"},
		},
		{
			Name: "snapshot-rescued-late", Class: "an orphan that is being destroyed is set to Retain: its data stays, and no object reports it",
			Edits:  []Edit{{snapshotTable, "When: []fact{leafContentExists, not(leafContentDeleting), not(leafContentSecured), either(leafExists, not(leafContentStamped))}", "When: []fact{leafContentExists, not(leafContentSecured), either(leafExists, not(leafContentStamped))}"}},
			Caught: []string{"unrecorded data is left"},
		},
		{
			Name: "snapshot-any-handle", Class: "I8: any snapshot that a leaf content names by its handle is destroyed",
			Edits:  []Edit{{"internal/mirror/snapshot/names.go", "	return r.Handle == \"\" || handle == r.Handle ||", "	return true || handle == r.Handle ||"}},
			Caught: []string{"I8: foreign data is destroyed"},
		},
		{
			Name: "snapshot-silent-replaced", Class: "the deletion of a snapshot whose leaf content was replaced is stuck, and nothing reports it",
			Edits:  []Edit{{snapshotTable, "mustBeDestroyed}, Rows: []row{\n\t\t{Phase: Mismatched, When: []fact{snapshotReplaced}", "mustBeDestroyed}, Rows: []row{\n\t\t{Phase: Mismatched, When: []fact{snapshotReplaced, not(hostContentExists)}"}},
			Caught: []string{"is not deleted"},
		},
		{
			Name: "snapshot-silent-snapshotter", Class: "the member's snapshot-controller or csi-snapshotter does not run: the snapshot is never ready, and nothing reports it",
			Edits:  []Edit{{snapshotTable, "{Phase: Taking, When: []fact{memberWaitTooLong}", "{Phase: Taking, When: []fact{memberWaitTooLong, not(hostContentExists)}"}},
			Caught: []string{"the VolumeSnapshot is not ready"},
		},
	}
}

// The files about snapshots and attachments that several mutations edit.
const (
	snapshotTable    = "internal/snapshot/table.go"
	snapshotObserved = "internal/snapshot/observed.go"
	mirrorContent    = "internal/mirror/snapshot/leaf.go"
	proofSnapshot    = "internal/proof/snapshots_proofs.go"
	leafAttachment   = "internal/controller/leafpvc/attachment.go"
)

// ofSnapshots returns the defects that affect snapshots.
func ofSnapshots() []Mutation {
	return []Mutation{
		{
			Name: "snapshot-unsecured", Class: "I2: leaf contents do not get policy Retain, so an action in the member alone destroys a snapshot",
			Edits: []Edit{
				{mirrorContent, "known && IsContentRetained(leaf) {", "known {"},
				{mirrorContent, "	after.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentRetain\n	return after\n}\n\n// IsContentRetained", "	return after\n}\n\n// IsContentRetained"},
				{"internal/guarded/snapshot.go", "\tif !mirrorsnapshot.IsContentRetained(after) {", "\tif false && !mirrorsnapshot.IsContentRetained(after) {"},
			},
			Scenario: "snapshot-lost", Caught: []string{"I2", "I6"},
		},
		{
			Name: "snapshot-overrules-member", Class: "I2: policy Retain of the member's class is ignored: the snapshot is destroyed with its root",
			Edits: []Edit{
				{mirrorContent, "\tif MemberDeletionPolicy(leaf) == snapshotv1.VolumeSnapshotContentRetain {\n\t\tafter", "\tif MemberDeletionPolicy(leaf) == \"never\" {\n\t\tafter"},
				{snapshotObserved, "|| mirrorsnapshot.MemberDeletionPolicy(s.Content) == snapshotv1.VolumeSnapshotContentDelete)", "|| mirrorsnapshot.MemberDeletionPolicy(s.Content) != \"\")"},
				{"internal/proof/snapshots_evidence.go", "content.UID == record.Content && mirrorsnapshot.MemberDeletionPolicy(content) == snapshotv1.VolumeSnapshotContentDelete", "content.UID == record.Content"},
			},
			Scenario: "snapshot-retain-member", Caught: []string{"I2", "I6"},
		},
		{
			Name: "snapshot-overrules-host", Class: "I2: policy Retain of the host's class is ignored",
			Edits: []Edit{
				{snapshotObserved, "mirrorsnapshot.IsSnapshotBeingDeleted(s.Host) && s.Host.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete &&", "mirrorsnapshot.IsSnapshotBeingDeleted(s.Host) &&"},
				{snapshotObserved, "	return s.Host.DeletionTimestamp != nil && mirror", "	return mirror"},
				{snapshotTable, "When: []fact{hostContentDeleting, rootEnded, mustBeDestroyed}", "When: []fact{rootEnded, mustBeDestroyed}"},
				{proofSnapshot, "		return now.DeletionTimestamp != nil && now.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete &&\n", "		return true &&\n"},
			},
			Scenario: "snapshot-retain", Caught: []string{"I2", "I6"},
		},
		{
			Name: "snapshot-host-first", Class: "I1: the host forgets a snapshot before the member has destroyed it",
			Edits: []Edit{
				{snapshotTable, "\t\t{Phase: Destroying, When: []fact{leafContentExists, leafContentRetained}, Step: SetDelete, Owner: RootSnapshot},\n", "\t\t{Phase: Destroying, When: []fact{hostContentHasFinalizer}, Step: DropHost, Owner: RootSnapshot},\n"},
				{"internal/proof/snapshots_dropping.go", "	began, record, root := p.Clock.Now(), mirror", "\treturn newDroppableContent(p.Clock, p.Clock.Now(), host), true, nil\n\tbegan, record, root := p.Clock.Now(), mirror"},
			},
			Scenario: "snapshot-delete", Caught: []string{"I1", "I6"},
		},
		{
			Name: "snapshot-absence-proves", Class: "I2: absence of a VolumeSnapshot from a cache counts as its end",
			Edits:    []Edit{{proofSnapshot, "	gone := now == nil || now.UID != uid\n", "	gone := true\n"}},
			Scenario: "snapshot", Fault: "stale-snapshots@host/patch/volumesnapshotcontents/content#3",
			Caught: []string{"I1", "I2", "I6"},
		},
		{
			Name: "snapshot-abandoned-destroyed", Class: "a snapshot that an admin has abandoned is destroyed",
			Edits: []Edit{
				{snapshotObserved, "\treturn mirrorsnapshot.IsAbandonedSnapshot(s.Host) || mirrorsnapshot.IsClusterGone", "\treturn mirrorsnapshot.IsClusterGone"},
				{proofSnapshot, "mirrorsnapshot.IsSnapshotBeingDeleted(now) && !mirrorsnapshot.IsAbandonedSnapshot(now) &&", "mirrorsnapshot.IsSnapshotBeingDeleted(now) &&"},
			},
			Scenario: "snapshot-abandon", Caught: []string{"I2", "I6"},
		},
		{
			Name: "snapshot-left-behind", Class: "after a member is deregistered, nothing reports that it has the snapshot",
			Edits:    []Edit{{"internal/deregistration/deregister.go", "slices.ContainsFunc(l.snapshots, isSnapshotUnreleased), len(l.copiedVolumes)", "len(l.copiedVolumes)"}, {"internal/deregistration/deregister.go", "\t\tif !isSnapshotUnreleased(*before) {", "		if before.Name != \"\" {"}},
			Scenario: "snapshot-unregister-force", Caught: []string{"I6"},
		},
		{
			Name: "snapshot-by-name", Class: "I4: a member's own VolumeSnapshot with the same name is treated as a leaf",
			Edits:    []Edit{{"internal/snapshot/observe.go", "	case !ours:\n		s.NameTaken = true\n	case origin.UID != s.UID:", "	case ours && origin.UID != s.UID:"}},
			Scenario: "snapshot-taken", Caught: []string{"I4", "I6"},
		},
	}
}

// ofAttributes returns the defects that affect VolumeAttributesClasses.
func ofAttributes() []Mutation {
	return []Mutation{
		{
			Name: "attributes-unmapped", Class: "a leaf claim names the host's VolumeAttributesClass, which does not exist in the member",
			Edits:    []Edit{{"internal/controller/rootpvc/attributes.go", "r.MemberWriter.PatchStamped(ctx, actor, o.Leaf, pvc.ClaimWithAttributesClass(o.Leaf, name, host))", "r.MemberWriter.PatchStamped(ctx, actor, o.MemberWriter, pvc.ClaimWithAttributesClass(o.MemberWriter, host, name))"}},
			Scenario: "modify", Caught: []string{"I6"},
		},
		{
			Name: "attributes-unnamed", Class: "the host shows the member's name of a VolumeAttributesClass, which no quota matches",
			Edits:    []Edit{{"internal/mirror/pvc/attributes.go", "\tif host := attributesClassRecords(leaf)[member]; host != \"\" {\n\t\treturn", "\tif host := attributesClassRecords(leaf)[member]; host == \"never\" {\n\t\treturn"}},
			Scenario: "modify-first", Caught: []string{"I5", "I6"},
		},
	}
}

// ofAttachments returns the defects that affect the condition Attached.
func ofAttachments() []Mutation {
	return []Mutation{
		{
			Name: "attached-for-ever", Class: "a volume that was detached is reported as attached: only existing VolumeAttachments count",
			Edits: []Edit{
				{leafAttachment, "	return o, err\n}", "	if len(o.found) == 0 {\n		return nil, err\n	}\n	return o, err\n}"},
			},
			Scenario: "detach", Fault: "kill-before@host/patch/persistentvolumeclaims.status/data#1", Caught: []string{"I6"},
		},
	}
}
