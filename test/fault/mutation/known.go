package mutation

// The files that several mutations edit.
const (
	rootPVAct      = "internal/controller/rootpv/act.go"
	rootPVCDelete  = "internal/controller/rootpvc/delete.go"
	rootPVCReport  = "internal/controller/rootpvc/reporter.go"
	rootPVCAct     = "internal/controller/rootpvc/act.go"
	rootPodNext    = "internal/controller/rootpod/lifecycle/next.go"
	rootPodAct     = "internal/controller/rootpod/act.go"
	leafPVAct      = "internal/controller/leafpv/act.go"
	volumeTable    = "internal/volume/lifecycle/volumes.go"
	promiseTable   = "internal/volume/lifecycle/promises.go"
	volumeFacts    = "internal/volume/lifecycle/facts.go"
	volumeObserved = "internal/volume/observed.go"
	volumeObserve  = "internal/volume/observe/observe.go"
	desiredVolume  = "internal/volume/desired/volume.go"
	volumeClaim    = "internal/volume/claim.go"
	desiredClaim   = "internal/volume/desired/claim.go"
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
var unproven = Edit{"internal/proof/dropping/dropping.go", "	cluster, name, uid, ours := hostpv.LeafOf(host)\n", "	return droppable(p.Clock, p.Clock.Now(), host), true, nil\n	cluster, name, uid, ours := hostpv.LeafOf(host)\n"}

// panics makes controller-runtime not recover panics, so that they end the process.
var panics = Edit{link, "		SkipNameValidation:      ptr.To(true),", "		RecoverPanic: ptr.To(false), SkipNameValidation: ptr.To(true),"}

// kosmos re-creates the defects of Kosmos' root and leaf controllers.
func kosmos() []Mutation { //nolint:funlen // a table
	return []Mutation{
		{
			Name: "deaf-after-restart", Class: "a restart during a deletion leaks the leaf claim and the disk: the manager relies on the deletion event",
			Edits: []Edit{
				{"internal/route/router.go", "return r.Each(owner, object, metav1.NamespaceAll, func(obj client.Object) { s.enqueue(nil, obj) })", "return r.Each(owner, object, metav1.NamespaceAll, func(obj client.Object) {\n		switch obj.(type) {\n		case *corev1.PersistentVolume, *corev1.PersistentVolumeClaim:\n			return\n		}\n		s.enqueue(nil, obj)\n	})"},
				{link, "	\"sigs.k8s.io/controller-runtime/pkg/predicate\"\n", "	\"sigs.k8s.io/controller-runtime/pkg/event\"\n	\"sigs.k8s.io/controller-runtime/pkg/predicate\"\n"},
				{link, "l.Cache, object, urgency.Handler(requests), only...)", "l.Cache, object, urgency.Handler(requests), append(only,\n		predicate.Funcs{CreateFunc: func(e event.CreateEvent) bool {\n			switch e.Object.(type) {\n			case *corev1.PersistentVolume, *corev1.PersistentVolumeClaim:\n				return !e.IsInInitialList\n			}\n			return true\n		}})...)"},
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
				{guardedLeaf, "	return foreign(obj, \"it lacks the stamp of this host\")", "	return nil"},
				{"internal/proof/evidence.go", "root.w == nil || root.w.UID != mirror.RootUID(claim) {", "root.w == nil {"},
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
			Edits:    []Edit{panics, {volumeFacts, "return s.Host != nil && hostpv.Ended(s.Host) })", "return s.Host != nil && s.Host.Spec.ClaimRef.UID != \"\" && hostpv.Ended(s.Host) })"}},
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
				{rootPVCAct, "	if err == nil {\n		return r.reports.SetPlaced(ctx, o.Root, nil)\n	}", "	for err == nil {\n		var there corev1.PersistentVolumeClaim\n		if r.Live.Get(ctx, client.ObjectKeyFromObject(leaf), &there) != nil || there.Status.Phase == corev1.ClaimBound || ctx.Err() != nil {\n			return r.reports.SetPlaced(ctx, o.Root, nil)\n		}\n	}"},
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
			Edits:    []Edit{{"internal/deregistration/deregister.go", "	case l.outOfReach():\n", "	case l.policy != \"\":\n		return finish\n	case l.outOfReach():\n"}},
			Scenario: "unregister-drain", Caught: []string{"I1", "I6"},
		},
	}
}

// others re-creates defects of projects other than Kosmos.
func others() []Mutation {
	return []Mutation{
		{
			Name: "bound-at-once", Class: "the host claim is Bound although the member could not create the disk",
			Edits:    []Edit{{rootPVCAct, "	if err == nil {\n		return r.reports.SetPlaced(ctx, o.Root, nil)\n	}", "	if err == nil {\n		promised := &corev1.PersistentVolume{}\n		promised.Name, promised.UID = \"pvc-\"+string(leaf.UID), leaf.UID\n		promised.Spec.AccessModes, promised.Spec.VolumeMode = leaf.Spec.AccessModes, leaf.Spec.VolumeMode\n		promised.Spec.Capacity = leaf.Spec.Resources.Requests\n		return r.Root.Create(ctx, actor, hostpv.Mirror(promised, o.Root, corev1.PersistentVolumeReclaimDelete, r.Member))\n	}"}},
			Scenario: "create", Caught: []string{"I1", "I3", "I6"},
		},
		{
			Name: "ignores-policy", Class: "the reclaim policy is ignored",
			Edits:    []Edit{{mirrorVolume, "	if hostClass == nil || leafPolicy != corev1.PersistentVolumeReclaimDelete {\n		return corev1.PersistentVolumeReclaimRetain\n	}", "	if leafPolicy == corev1.PersistentVolumeReclaimDelete {\n		return corev1.PersistentVolumeReclaimDelete\n	}"}},
			Scenario: "recreate-retain", Caught: []string{"I2", "I6"},
		},
		{
			Name: "weakens-rwop", Class: "ReadWriteOncePod is weakened to ReadWriteOnce",
			Edits:    []Edit{{mirrorClaim, "	leaf.Spec.StorageClassName = fields.Clone(class)", "	leaf.Spec.StorageClassName = fields.Clone(class)\n	leaf.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}"}},
			Scenario: "one-pod", Caught: []string{"I6"},
		},
		{
			Name: "drops-data-source", Class: "snapshots and data sources are dropped: the disk is empty",
			Edits:    []Edit{dropsSource},
			Scenario: "data-source", Caught: []string{"I6"},
		},
		{
			Name: "no-class", Class: "a defaulted class is not written back",
			Edits:    []Edit{{mirrorVolume, "	spec.StorageClassName = hostclass.NameOf(root)", "	_, spec.StorageClassName = hostclass.NameOf, \"\""}},
			Scenario: "grow", Caught: []string{"I6"},
		},
		{
			Name: "leaks-selected-node", Class: "selected-node leaks between clusters",
			Edits:    []Edit{{mirrorClaim, "	leaf.Spec.StorageClassName = fields.Clone(class)", "	leaf.Spec.StorageClassName = fields.Clone(class)\n	leaf.Annotations = map[string]string{\"volume.kubernetes.io/selected-node\": root.Annotations[\"volume.kubernetes.io/selected-node\"]}"}},
			Scenario: "create", Caught: []string{"I6"},
		},
		{
			Name: "unpinned", Class: "failover loses the data: the host PV is not pinned to the member that has the disk",
			Edits: []Edit{
				{mirrorVolume, "	spec.NodeAffinity = affinity.ToMember(m.ClusterID)", "	_, spec.NodeAffinity = affinity.ToMember, nil"},
				{mirrorVolume, " || !affinity.IsToMember(host.Spec.NodeAffinity, clusterID) && BackendOf(host) == \"\" {", " {"},
			},
			Scenario: "create", Caught: []string{"I6"},
		},
	}
}
