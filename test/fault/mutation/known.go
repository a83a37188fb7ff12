package mutation

// The files that several mutations edit.
const (
	rootPVAct      = "internal/controller/rootpv/act.go"
	rootPVCDelete  = "internal/controller/rootpvc/delete.go"
	rootPVCReport  = "internal/controller/rootpvc/reporter.go"
	rootPVCAct     = "internal/controller/rootpvc/act.go"
	rootPodNext    = "internal/controller/rootpod/lifecycle/next.go"
	rootPodResize  = "internal/controller/rootpod/resize.go"
	rootPodAct     = "internal/controller/rootpod/act.go"
	leafPVAct      = "internal/controller/leafpv/act.go"
	volumeTable    = "internal/volume/lifecycle/volumes.go"
	promiseTable   = "internal/volume/lifecycle/promises.go"
	volumeFacts    = "internal/volume/lifecycle/facts.go"
	volumeObserved = "internal/volume/observed.go"
	volumeObserve  = "internal/volume/observe/observe.go"
	desiredVolume  = "internal/volume/volume.go"
	volumeClaim    = "internal/volume/claim.go"
	desiredClaim   = "internal/volume/desired_claim.go"
	volumeSource   = "internal/volume/source.go"
	claimTable     = "internal/volume/lifecycle/claims.go"
	mirrorVolume   = "internal/mirror/hostpv/volume.go"
	mirrorClaim    = "internal/mirror/pvc/claim.go"
	guardedLeaf    = "internal/guarded/leaf.go"
	proofMirrored  = "internal/proof/mirrored.go"
	mirrorOrigin   = "internal/mirror/origin.go"
	volumeOwner    = "internal/volume/ownership.go"
	guardedWriter  = "internal/guarded/writer.go"
	link           = "internal/member/link.go"
)

// unproven removes host PVs without proof that their leaf PVs are gone.
var unproven = Edit{"internal/proof/dropping.go", "\tcluster, name, uid, ours := hostpv.LeafOfHostVolume(host)\n", "\treturn newDroppableVolume(p.Clock, p.Clock.Now(), host), true, nil\n\tcluster, name, uid, ours := hostpv.LeafOfHostVolume(host)\n"}

// panics makes controller-runtime not recover panics, so that they end the process.
var panics = Edit{link, "		SkipNameValidation:      ptr.To(true),", "		RecoverPanic: ptr.To(false), SkipNameValidation: ptr.To(true),"}

// kosmos re-creates the defects of Kosmos' root and leaf controllers.
func kosmos() []Mutation { //nolint:funlen // a table
	return []Mutation{
		{
			Name: "deaf-after-restart", Class: "a restart during a deletion leaks the leaf claim and the disk: the manager relies on the deletion event",
			Edits: []Edit{
				{"internal/route/router.go", "return r.VisitObjects(owner, object, metav1.NamespaceAll, func(obj client.Object) { s.enqueueRequests(nil, obj) })", "return r.VisitObjects(owner, object, metav1.NamespaceAll, func(obj client.Object) {\n\t\tswitch obj.(type) {\n\t\tcase *corev1.PersistentVolume, *corev1.PersistentVolumeClaim:\n\t\t\treturn\n\t\t}\n\t\ts.enqueueRequests(nil, obj)\n\t})"},
				{link, "	\"sigs.k8s.io/controller-runtime/pkg/predicate\"\n", "	\"sigs.k8s.io/controller-runtime/pkg/event\"\n	\"sigs.k8s.io/controller-runtime/pkg/predicate\"\n"},
				{link, "l.Cache, object, route.EnqueueHandler(requests), only...)", "l.ServedCache, object, route.EnqueueHandler(requests), append(only,\n\t\tpredicate.Funcs{CreateFunc: func(e event.CreateEvent) bool {\n\t\t\tswitch e.Object.(type) {\n\t\t\tcase *corev1.PersistentVolume, *corev1.PersistentVolumeClaim:\n\t\t\t\treturn !e.IsInInitialList\n\t\t\t}\n\t\t\treturn true\n\t\t}})...)"},
			},
			Scenario: "delete", Fault: "kill-before@cluster38/delete/persistentvolumeclaims/data#1",
			Caught: []string{"I1", "I6"},
		},
		{
			Name: "forgetful-deletion", Class: "an outage during a deletion leaks the disk: the host PV is deleted before its leaf",
			Edits: []Edit{
				unproven,
				{volumeTable, "mustBeDestroyed, not(hasLeafPV), not(leafClaimNamesIt)}, Step: DropHost, Owner: RootPV},\n		{Phase: Destroying, When: []fact{mustBeDestroyed, hasLeafPV", "mustBeDestroyed}, Step: DropHost, Owner: RootPV},\n		{Phase: Destroying, When: []fact{mustBeDestroyed, hasLeafPV"},
			},
			Scenario: "delete", Caught: []string{"I1", "I6"},
		},
		{
			Name: "deletes-by-name", Class: "a member's own claim with the same name is deleted: deletes go by name, without an ownership check",
			Edits: []Edit{
				{"internal/index/find.go", "	if !ours {\n		return nil, mirror.Origin{}, nil\n	}\n	return leaf, origin, nil", "	if !ours {\n		origin = mirror.Origin{HostID: hostID, Root: key, UID: \"somebody\"}\n	}\n	return leaf, origin, nil"},
				{guardedLeaf, "\treturn newForeignError(obj, \"it lacks the stamp of this host\")", "	return nil"},
				{"internal/proof/evidence.go", "root.witness == nil || root.witness.UID != mirror.StampedRootUID(claim) {", "root.witness == nil {"},
				{"internal/member/leafcache/cache.go", "			&corev1.PersistentVolumeClaim{}: {Label: ours},", "			&corev1.PersistentVolumeClaim{}: {},"},
			},
			Scenario: "taken", Caught: []string{"I4", "I6"},
		},
		{
			Name: "erases-annotations", Class: "root annotations are erased by whole-object patches",
			Edits: []Edit{
				{rootPVCAct, "	after := before.DeepCopy()\n	if after.Annotations == nil {\n		after.Annotations = map[string]string{}\n	}\n	change(after.Annotations)", "	after := before.DeepCopy()\n	after.Annotations = map[string]string{}\n	change(after.Annotations)"},
				{"internal/guarded/root.go", "	if !equality.Semantic.DeepEqual(allowed, after) {", "	if false && !equality.Semantic.DeepEqual(allowed, after) {"},
			},
			Scenario: "create", Caught: []string{"I4", "I6"},
		},
		{
			Name: "copies-finalizers", Class: "the leaf PV's finalizers are copied to the host PV, which then stays Terminating forever",
			Edits:    []Edit{{mirrorVolume, "Finalizers:  []string{v1alpha1.FinalizerLeafVolume},", "Finalizers:  append([]string{v1alpha1.FinalizerLeafVolume, \"external-provisioner.volume.kubernetes.io/finalizer\"}, leaf.Finalizers...),"}},
			Scenario: "delete", Caught: []string{"I1", "I6"},
		},
		{
			Name: "nil-claimref", Class: "a cleared claimRef of a retained PV crashes the manager",
			Edits:    []Edit{panics, {volumeFacts, "return s.Host != nil && hostpv.IsReleasedOrFailed(s.Host) })", "return s.Host != nil && s.Host.Spec.ClaimRef.UID != \"\" && hostpv.IsReleasedOrFailed(s.Host) })"}},
			Scenario: "reuse", Caught: []string{"I6"},
		},
		{
			Name: "nil-affinity", Class: "a PV without nodeAffinity crashes the manager",
			Edits:    []Edit{panics, {mirrorVolume, "	spec := *leaf.Spec.DeepCopy()", "	spec := *leaf.Spec.DeepCopy()\n	_ = leaf.Spec.NodeAffinity.Required.NodeSelectorTerms[0]"}},
			Scenario: "create", Caught: []string{"I6"},
		},
		{
			Name: "pushes-bound-claims", Class: "a host claim that is already bound is pushed with its volume name, and becomes Lost in the member",
			Edits: []Edit{
				{volumeTable, "{not(hasLeafPV)}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeLost", "{not(hasLeafPV), hasLeafClaim}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeLost"},
				{desiredClaim, "		class = s.Leaf.Spec.StorageClassName", "		class = ptr.Deref(s.Root.Spec.StorageClassName, \"\")"},
				{desiredClaim, "	if capacity := s.Leaf.Spec.Capacity[corev1.ResourceStorage]; leaf.Spec", "	if capacity := s.Root.Status.Capacity[corev1.ResourceStorage]; leaf.Spec"},
			},
			Scenario: "lost-leaf-volume", Caught: []string{"I1", "I3", "I6"},
		},
		{
			Name: "absence-deletes", Class: "the host PV is deleted if its leaf PV is not found: after a member is wiped, all its host PVs are lost",
			Edits: []Edit{
				unproven,
				{volumeTable, "		{Phase: Holding, When: []fact{otherLeafClaimHoldsIt, not(leafPVStamped)}, Step: Stamp, Owner: LeafPV},\n", "		{Phase: Destroying, When: []fact{hostPVHasFinalizer, not(hasLeafPV)}, Step: DropHost, Owner: RootPV},\n"},
			},
			Scenario: "lost-leaf-volume", Caught: []string{"I2", "I6"},
		},
		{
			Name: "waits-in-worker", Class: "a worker that waits for one claim blocks all other claims",
			Edits: []Edit{
				{"internal/controller/rootpvc/controller.go", "	workers = 8", "	workers = 1"},
				{rootPVCAct, "\tif err == nil {\n\t\treturn r.reports.SetPlacedCondition(ctx, o.Root, nil)\n\t}", "\tfor err == nil {\n\t\tvar there corev1.PersistentVolumeClaim\n\t\tif r.Live.Get(ctx, client.ObjectKeyFromObject(leaf), &there) != nil || there.Status.Phase == corev1.ClaimBound || ctx.FailureCause() != nil {\n\t\t\treturn r.reports.SetPlacedCondition(ctx, o.Root, nil)\n\t\t}\n\t}"},
			},
			Scenario: "side-by-side", Caught: []string{"I6"},
		},
		{
			Name: "one-name", Class: "after a name collision, the claim stays Pending, and only the log reports it",
			Edits:    []Edit{{mirrorVolume, "	if !collides {\n		return leafName\n	}", "	if !collides || leafName != \"\" {\n		return leafName\n	}"}},
			Scenario: "volume-name-taken", Caught: []string{"I6"},
		},
		{
			Name: "leaves-in-haste", Class: "deregistering orphans everything",
			Edits:    []Edit{{"internal/deregistration/deregister.go", "\tcase l.needsUnreachableMember():\n", "\tcase l.policy != \"\":\n\t\treturn stepFinish\n\tcase l.needsUnreachableMember():\n"}},
			Scenario: "unregister-drain", Caught: []string{"I1", "I6"},
		},
	}
}

// others re-creates defects of projects other than Kosmos.
func others() []Mutation {
	return []Mutation{
		{
			Name: "bound-at-once", Class: "the host claim is Bound although the member could not create the disk",
			Edits:    []Edit{{rootPVCAct, "\tif err == nil {\n\t\treturn r.reports.SetPlacedCondition(ctx, o.Root, nil)\n\t}", "\tif err == nil {\n\t\tpromised := &corev1.PersistentVolume{}\n\t\tpromised.Name, promised.UID = \"pvc-\"+string(leaf.UID), leaf.UID\n\t\tpromised.Spec.AccessModes, promised.Spec.VolumeMode = leaf.Spec.AccessModes, leaf.Spec.VolumeMode\n\t\tpromised.Spec.Capacity = leaf.Spec.Resources.Requests\n\t\treturn r.Root.CreateStamped(ctx, actor, hostpv.Mirror(promised, o.Root, corev1.PersistentVolumeReclaimDelete, r.Member))\n\t}"}},
			Scenario: "create", Caught: []string{"I1", "I3", "I6"},
		},
		{
			Name: "ignores-policy", Class: "the reclaim policy is ignored",
			Edits:    []Edit{{mirrorVolume, "	if hostClass == nil || leafPolicy != corev1.PersistentVolumeReclaimDelete {\n		return corev1.PersistentVolumeReclaimRetain\n	}", "	if leafPolicy == corev1.PersistentVolumeReclaimDelete {\n		return corev1.PersistentVolumeReclaimDelete\n	}"}},
			Scenario: "recreate-retain", Caught: []string{"I2", "I6"},
		},
		{
			Name: "weakens-rwop", Class: "ReadWriteOncePod is weakened to ReadWriteOnce",
			Edits:    []Edit{{mirrorClaim, "\tleaf.Spec.StorageClassName = fields.ClonePointer(class)", "\tleaf.Spec.StorageClassName = fields.ClonePointer(class)\n\tleaf.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}"}},
			Scenario: "one-pod", Caught: []string{"I6"},
		},
		{
			Name: "drops-data-source", Class: "snapshots and data sources are dropped: the disk is empty",
			Edits:    []Edit{dropsSource},
			Scenario: "data-source", Caught: []string{"I6"},
		},
		{
			Name: "no-class", Class: "a defaulted class is not written back",
			Edits:    []Edit{{mirrorVolume, "\tspec.StorageClassName = ClassNameOf(root)", "\t_, spec.StorageClassName = ClassNameOf, \"\""}},
			Scenario: "grow", Caught: []string{"I6"},
		},
		{
			Name: "leaks-selected-node", Class: "selected-node leaks between clusters",
			Edits:    []Edit{{mirrorClaim, "\tleaf.Spec.StorageClassName = fields.ClonePointer(class)", "\tleaf.Spec.StorageClassName = fields.ClonePointer(class)\n\tleaf.Annotations = map[string]string{\"volume.kubernetes.io/selected-node\": root.Annotations[\"volume.kubernetes.io/selected-node\"]}"}},
			Scenario: "create", Caught: []string{"I6"},
		},
		{
			Name: "unpinned", Class: "failover loses the data: the host PV is not pinned to the member that has the disk",
			Edits: []Edit{
				{mirrorVolume, "\tspec.NodeAffinity = nodeAffinityOf(leaf, m)", "\t_, spec.NodeAffinity = nodeAffinityOf, nil"},
				{mirrorVolume, " || !mirror.IsNodeAffinityToMember(host.Spec.NodeAffinity, clusterID) && BackendOfVolume(host) == \"\" {", " {"},
			},
			Scenario: "create", Caught: []string{"I6"},
		},
	}
}
