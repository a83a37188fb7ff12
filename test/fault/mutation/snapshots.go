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
			Edits:  []Edit{{"internal/index/needs.go", "!= source.Key() || !recorded || ", "!= source.Key() || recorded || "}},
			Caught: []string{"I2: data is destroyed from which a claim must still be restored"},
		},
		{
			Name: "snapshot-silent-end", Class: "the host content is deleted before the snapshot is taken: the snapshot is never ready, and nothing reports it",
			Edits:  []Edit{{snapshotTable, "{Phase: Ending, When: []fact{notTaken, ending}", "{Phase: Ending, When: []fact{notTaken, ending, not(hosted)}"}},
			Caught: []string{"the VolumeSnapshot is not ready"},
		},
		{
			Name: "snapshot-exposed", Class: "I2: a leaf content that the member's admin sets to Delete keeps that policy while the host content, or only its VolumeSnapshot, is being deleted",
			Edits:  []Edit{{snapshotTable, "{Phase: Holding, When: []fact{hasContent, begun, not(secured)}", "{Phase: Holding, When: []fact{hasContent, begun, not(secured), not(ending), not(rootEnded)}"}},
			Caught: []string{"a leaf content that must be kept has policy Delete"},
		},
		{
			Name: "snapshot-rescued-late", Class: "an orphan that is being destroyed is set to Retain: its data stays, and no object reports it",
			Edits:  []Edit{{snapshotTable, "When: []fact{hasContent, not(contentDeleting), not(secured), either(hasLeaf, not(stamped))}", "When: []fact{hasContent, not(secured), either(hasLeaf, not(stamped))}"}},
			Caught: []string{"unrecorded data is left"},
		},
		{
			Name: "snapshot-any-handle", Class: "I8: any snapshot that a leaf content names by its handle is destroyed",
			Edits:  []Edit{{"internal/mirror/snapshot/names.go", "	return r.Handle == \"\" || handle == r.Handle ||", "	return true || handle == r.Handle ||"}},
			Caught: []string{"I8: foreign data is destroyed"},
		},
		{
			Name: "snapshot-silent-replaced", Class: "the deletion of a snapshot whose leaf content was replaced is stuck, and nothing reports it",
			Edits:  []Edit{{snapshotTable, "destroyed}, Rows: []row{\n		{Phase: Mismatched, When: []fact{replaced}", "destroyed}, Rows: []row{\n		{Phase: Mismatched, When: []fact{replaced, not(hosted)}"}},
			Caught: []string{"is not deleted"},
		},
		{
			Name: "snapshot-silent-snapshotter", Class: "the member's snapshot-controller or csi-snapshotter does not run: the snapshot is never ready, and nothing reports it",
			Edits:  []Edit{{snapshotTable, "{Phase: Taking, When: []fact{silent}", "{Phase: Taking, When: []fact{silent, not(hosted)}"}},
			Caught: []string{"the VolumeSnapshot is not ready"},
		},
	}
}

// The files about snapshots and attachments that several mutations edit.
const (
	snapshotTable    = "internal/snapshot/lifecycle/table.go"
	snapshotObserved = "internal/snapshot/observed.go"
	mirrorContent    = "internal/mirror/snapshot/leaf.go"
	proofSnapshot    = "internal/proof/snapshots/proofs.go"
	leafAttachment   = "internal/controller/leafpvc/attachment.go"
)

// ofSnapshots returns the defects that affect snapshots.
func ofSnapshots() []Mutation {
	return []Mutation{
		{
			Name: "snapshot-unsecured", Class: "I2: leaf contents do not get policy Retain, so an action in the member alone destroys a snapshot",
			Edits: []Edit{
				{mirrorContent, "known && Retained(leaf) {", "known {"},
				{mirrorContent, "	after.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentRetain\n	return after\n}\n\n// Retained", "	return after\n}\n\n// Retained"},
				{"internal/guarded/snapshot.go", "	if !mirrorsnapshot.Retained(after) {", "	if false && !mirrorsnapshot.Retained(after) {"},
			},
			Scenario: "snapshot-lost", Caught: []string{"I2", "I6"},
		},
		{
			Name: "snapshot-overrules-member", Class: "I2: policy Retain of the member's class is ignored: the snapshot is destroyed with its root",
			Edits: []Edit{
				{mirrorContent, "	if Policy(leaf) == snapshotv1.VolumeSnapshotContentRetain {\n		after", "	if Policy(leaf) == \"never\" {\n		after"},
				{snapshotObserved, "|| mirrorsnapshot.Policy(s.Content) == snapshotv1.VolumeSnapshotContentDelete)", "|| mirrorsnapshot.Policy(s.Content) != \"\")"},
				{"internal/proof/snapshots/evidence.go", "content.UID == record.Content && mirrorsnapshot.Policy(content) == snapshotv1.VolumeSnapshotContentDelete", "content.UID == record.Content"},
			},
			Scenario: "snapshot-retain-member", Caught: []string{"I2", "I6"},
		},
		{
			Name: "snapshot-overrules-host", Class: "I2: policy Retain of the host's class is ignored",
			Edits: []Edit{
				{snapshotObserved, "mirrorsnapshot.Announced(s.Host) && s.Host.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete &&", "mirrorsnapshot.Announced(s.Host) &&"},
				{snapshotObserved, "	return s.Host.DeletionTimestamp != nil && mirror", "	return mirror"},
				{snapshotTable, "When: []fact{ending, rootEnded, destroyed}", "When: []fact{rootEnded, destroyed}"},
				{proofSnapshot, "		return now.DeletionTimestamp != nil && now.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete &&\n", "		return true &&\n"},
			},
			Scenario: "snapshot-retain", Caught: []string{"I2", "I6"},
		},
		{
			Name: "snapshot-host-first", Class: "I1: the host forgets a snapshot before the member has destroyed it",
			Edits: []Edit{
				{snapshotTable, "		{Phase: Destroying, When: []fact{hasContent, retained}, Step: SetDelete, Owner: RootSnapshot},\n", "		{Phase: Destroying, When: []fact{held}, Step: DropHost, Owner: RootSnapshot},\n"},
				{"internal/proof/snapshots/dropping.go", "	began, record, root := p.Clock.Now(), mirror", "	return droppable(p.Clock, p.Clock.Now(), host), true, nil\n	began, record, root := p.Clock.Now(), mirror"},
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
				{snapshotObserved, "	return mirrorsnapshot.Abandoned(s.Host) || mirrorsnapshot.Gone", "	return mirrorsnapshot.Gone"},
				{proofSnapshot, "mirrorsnapshot.Announced(now) && !mirrorsnapshot.Abandoned(now) &&", "mirrorsnapshot.Announced(now) &&"},
			},
			Scenario: "snapshot-abandon", Caught: []string{"I2", "I6"},
		},
		{
			Name: "snapshot-left-behind", Class: "after a member is deregistered, nothing reports that it has the snapshot",
			Edits:    []Edit{{"internal/deregistration/deregister.go", "slices.ContainsFunc(l.snapshots, stays), len(l.copied)", "len(l.copied)"}, {"internal/deregistration/deregister.go", "		if !stays(*before) {", "		if before.Name != \"\" {"}},
			Scenario: "snapshot-unregister-force", Caught: []string{"I6"},
		},
		{
			Name: "snapshot-by-name", Class: "I4: a member's own VolumeSnapshot with the same name is treated as a leaf",
			Edits:    []Edit{{"internal/snapshot/observe/observe.go", "	case !ours:\n		s.NameTaken = true\n	case origin.UID != s.UID:", "	case ours && origin.UID != s.UID:"}},
			Scenario: "snapshot-taken", Caught: []string{"I4", "I6"},
		},
	}
}

// ofAttributes returns the defects that affect VolumeAttributesClasses.
func ofAttributes() []Mutation {
	return []Mutation{
		{
			Name: "attributes-unmapped", Class: "a leaf claim names the host's VolumeAttributesClass, which does not exist in the member",
			Edits:    []Edit{{"internal/controller/rootpvc/attributes.go", "r.Leaf.Patch(ctx, actor, o.Leaf, pvc.WithAttributesClass(o.Leaf, name, host))", "r.Leaf.Patch(ctx, actor, o.Leaf, pvc.WithAttributesClass(o.Leaf, host, name))"}},
			Scenario: "modify", Caught: []string{"I6"},
		},
		{
			Name: "attributes-unnamed", Class: "the host shows the member's name of a VolumeAttributesClass, which no quota matches",
			Edits:    []Edit{{"internal/mirror/pvc/attributes.go", "	if host := attributesNotes(leaf)[member]; host != \"\" {\n		return", "	if host := attributesNotes(leaf)[member]; host == \"never\" {\n		return"}},
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
