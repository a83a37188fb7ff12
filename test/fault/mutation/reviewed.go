package mutation

// reviewed re-creates defects that reviews found. The harness finds them because it now also
// restores clusters, registers them twice, re-creates leaf PVs and detects recovered panics.
func reviewed() []Mutation {
	return []Mutation{
		{
			Name: "other-uid-unmirrored", Class: "I2: a host PV whose leaf PV now has a different UID is ignored, and the volume counts as never mirrored",
			Edits: []Edit{
				{"internal/proof/mirrored.go", "	if len(known) > 0 {\n		return &known[0], nil\n	}", "	if len(known) > 0 {\n		return nil, nil\n	}"},
				{volumeObserve, "\ts.EarlierHosts = hosts\n", ""},
			},
			Scenario: "replaced-away", Caught: []string{"I2"},
		},
		{
			Name: "waits-for-replaced", Class: "I1: root_pv waits forever for the end of a leaf PV that was re-created with the same name, and the leaf claim blocks its own name",
			Edits:    []Edit{{volumeObserved, "\t\treturn proof.OutlivesClaim(s.Recreated, s.LeafClaim)\n", "		return false\n"}},
			Scenario: "replaced-delete", Caught: []string{"I6"},
		},
		{
			Name: "failed-is-not-ended", Class: "I1: a host PV whose reclaim failed does not count as released: its disk leaks",
			Edits:    []Edit{{mirrorVolume, " && (pv.Status.Phase == corev1.VolumeReleased || pv.Status.Phase == corev1.VolumeFailed)", " && pv.Status.Phase == corev1.VolumeReleased"}},
			Scenario: "delete-failed", Caught: []string{"I1", "I6"},
		},
		{
			Name: "runs-from-cache", Class: "I6: the decision to create a leaf Pod relies on the cache, so a deleted Pod runs again",
			Edits:    []Edit{{rootPodAct, "\tlive, err := index.FindObject[corev1.Pod](ctx, r.HostLive, client.ObjectKeyFromObject(cached))", "\tlive, err := index.FindObject[corev1.Pod](ctx, r.Host, client.ObjectKeyFromObject(cached))"}},
			Scenario: "pod-once", Fault: "stale-pods@cluster38/delete/pods/app#1", Caught: []string{"I6"},
		},
		{
			Name: "records-resize-first", Class: "I6: a resize is recorded before it is made, so a restart in between loses it",
			Edits: []Edit{{rootPodResize, "\terr := r.MemberWriter.ResizePod(ctx, actor, o.Leaf, resized)\n", `	recorded := podspec.RecordResize(o.Root, o.Leaf)
	if err := r.MemberWriter.PatchStamped(ctx, actor, o.Leaf, recorded); err != nil {
		return err
	}
	resized, _ = podspec.ResizePod(recorded, d.Drift)
	err := r.MemberWriter.ResizePod(ctx, actor, recorded, resized)
`}},
			Scenario: "resize", Fault: "kill-after@cluster38/patch/pods/app#1", Caught: []string{"I6"},
		},
		{
			Name: "leaves-unfinished", Class: "I6: after a member is restored, the leaf Pod of a root Pod that has ended runs again, and nothing stops it",
			Edits:    []Edit{{rootPodNext, "\treturn RemoveLeaf{Why: \"the Pod has ended with phase \" + string(o.Root.Status.Phase)}\n", "	return nil\n"}},
			Scenario: "pod-ends", Fault: "restore-member@host/patch/pods.status/app#1", Caught: []string{"I6"},
		},
		{
			Name: "believes-the-member", Class: "I8: a leaf claim with a volume places its root in its member, although no restore explains why the root has no placement",
			Edits:    []Edit{{volumeClaim, "\treturn s.LeafClaim.Spec.VolumeName != \"\" && s.Rules.AllowsAdoption(s.LeafClaim.Spec.VolumeName) ||\n\t\t!s.Placement.HostRestoreUnconfirmed && s.LeafClaim.CreationTimestamp.Time.Before(s.Placement.HostRestored)", "\treturn s.LeafClaim.Spec.VolumeName != \"\""}},
			Scenario: "forged", Caught: []string{"I8"},
		},
		{
			Name: "older-takes-over", Class: "an older registration that never connected takes over a cluster from the registration that owns it",
			Edits:    []Edit{{"internal/controller/clusterregistration/register.go", "owner != nil && owner.UID != cr.UID {", "owner != nil && isOlderRegistration(owner, cr) {"}},
			Scenario: "registered-before", Caught: []string{"I6"},
		},
		{
			Name: "late-notice", Class: "a restore of the host while the manager runs is detected only with the next epoch",
			Edits:    []Edit{{"internal/member/fencing/revision.go", "	if revision < highest {", "\tif false && monitor < highest {"}},
			Scenario: "delete", Fault: "restore-host@host/delete/pods/app#1", Caught: []string{"I2", "I6"},
		},
		{
			Name: "speaks-to-nobody", Class: "a leaf claim without a root makes root_pvc panic while destruction is suspended",
			Edits: []Edit{
				{rootPVCDelete, "		if !errors.Is(err, guarded.ErrSuspended) || o.Root == nil {", "		if !errors.Is(err, guarded.ErrSuspended) {"},
				{rootPVCReport, "\tcase o.Root != nil:\n\t\tr.EventClaimProblem(o.Root, problem)", "\tcase problem != nil && len(o.HostWriter.Name) >= 0:\n\t\tr.EventClaimProblem(o.HostWriter, problem)"},
			},
			Scenario: "create", Fault: "restore-host@host/create/persistentvolumes/volume#1", Caught: []string{"I6"},
		},
	}
}
