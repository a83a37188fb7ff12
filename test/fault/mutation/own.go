package mutation

import "slices"

// own returns mutations that each remove one safeguard of an invariant.
func own() []Mutation {
	return []Mutation{
		{
			Name: "no-finalizer", Class: "I1: the host PV lacks the finalizer that keeps it until its leaf is handled",
			Edits: []Edit{
				{mirrorVolume, "Finalizers:  []string{v1alpha1.FinalizerLeafVolume},", "Finalizers:  nil,"},
				{desiredVolume, "	controllerutil.AddFinalizer(after, v1alpha1.FinalizerLeafVolume)\n", "	_ = controllerutil.AddFinalizer\n"},
			},
			Scenario: "delete", Caught: []string{"I1", "I6"},
		},
		{
			Name: "cache-proves", Class: "I2: absence from a cache counts as proof",
			Edits: []Edit{{rootPVCDelete, "\tif e.Root, proven, err = r.NewProver().ProveRootGone(ctx, o.Origin.Root, o.Origin.UID); err != nil || !proven {", "\tp := r.NewProver()\n\tp.HostLive = p.Host\n\tif e.HostWriter, proven, err = p.ProveRootGone(ctx, o.Origin.HostWriter, o.Origin.UID); err != nil || !proven {"},
				{rootPVCDelete, "\t\te.Root, proven, err = r.NewProver().ProveRootGone(ctx, o.Origin.Root, o.Origin.UID)\n", "\t\tp := r.NewProver()\n\t\tp.HostLive = p.Host\n\t\te.HostWriter, proven, err = p.ProveRootGone(ctx, o.Origin.HostWriter, o.Origin.UID)\n"}},
			Scenario: "create-immediate", Fault: "stale-host@cluster38/create/persistentvolumeclaims/data#1",
			Caught: []string{"I2", "I6"},
		},
		{
			Name: "no-retain", Class: "I2: leaf PVs in use do not get policy Retain",
			Edits: []Edit{
				{desiredVolume, "\torigin.StampLeaf(after)\n\tsetRetainPolicy(after)\n", "\torigin.StampLeaf(after)\n"},
				{volumeTable, "not(leafClaimHoldsIt), leafPVStamped, not(leafPVRetainedOrGone)}", "not(leafClaimHoldsIt), leafPVStamped, not(leafPVStamped)}"},
			},
			Scenario: "lost-leaf-claim", Caught: []string{"I2", "I6"},
		},
		{
			Name: "releases-in-use", Class: "I2: a disk that is released with its last Pod is destroyed while a Pod uses it",
			Edits:    []Edit{{"internal/proof/host.go", "	case pod.Spec.NodeName == \"\", pod.Spec.NodeName == p.NodeName:\n		return true, nil\n", "	case pod.Spec.NodeName == \"\", pod.Spec.NodeName == p.NodeName:\n		return false, nil\n"}},
			Scenario: "promise-scratch", Caught: []string{"I2", "I5", "I6"},
		},
		{
			Name: "late-placement", Class: "I3: the leaf claim is created before placed-in is recorded",
			Edits:    []Edit{{claimTable, "		{Phase: Placing, When: []fact{not(rootPlaced)}, Step: Place, Owner: RootPVC},\n		{Phase: Unplacing", "		{Phase: Unplacing"}},
			Scenario: "create", Fault: "kill-after@cluster38/create/persistentvolumeclaims/data#1",
			Caught: []string{"I3", "I6"},
		},
		{
			Name: "steals", Class: "I3: another member takes a claim before it is proven that the first member has none of the claim's objects",
			Edits: []Edit{
				{claimTable, "{Phase: Unplaced, When: []fact{rootPlacedElsewhere}, Owner: RootPVC", "{Phase: Unplaced, When: []fact{rootPlacedElsewhere}, Step: Place, Owner: RootPVC"},
			},
			Scenario: "move", Caught: []string{"I1", "I3", "I5", "I6"},
		},
		{
			Name: "no-stamp", Class: "I4: leaf volumes are not stamped before they are mirrored",
			Edits:    []Edit{{volumeTable, "leafClaimAndLeafPVBound, leafPVNotStampedAndRetained}", "leafClaimAndLeafPVBound, leafPVNotStampedAndRetained, hasHostVolume}"}},
			Scenario: "create", Fault: "kill-after@host/create/persistentvolumes/volume#1",
			Caught: []string{"I2", "I6"},
		},
		{
			Name: "writes-for-ever", Class: "I5: a write that changes nothing is repeated",
			Edits:    []Edit{{desiredVolume, "	delete(after.Annotations, v1alpha1.AnnotationClusterGone)\n", "	metav1.SetMetaDataAnnotation(&after.ObjectMeta, \"xylem.io/seen\", s.Host.ResourceVersion)\n"}},
			Scenario: "create", Caught: []string{"I5", "I6"},
		},
		{
			Name: "uncapped-requeue", Class: "I5: a reconcile requeues itself without a reason, and writes",
			Edits: []Edit{
				{"internal/controller/leafpvc/controller.go", "\tif pvc.IsClaimStatusCurrent(root, want) {\n\t\treturn nil\n\t}\n", ""},
				{"internal/controller/leafpvc/controller.go", "	again, err := r.reportAttached(ctx, root)\n", "	again := time.Duration(1e8)\n	_, err = r.reportAttached(ctx, root)\n"},
				{"internal/controller/leafpvc/controller.go", "	\"errors\"\n", "	\"errors\"\n	\"time\"\n"},
			},
			Scenario: "create", Caught: []string{"I5", "I6"},
		},
		{
			Name: "no-way-back", Class: "I6: the progress of a destruction is recorded only in memory",
			Edits: []Edit{
				{rootPVAct, "import (\n	\"context\"\n	\"errors\"\n	\"fmt\"\n", "import (\n	\"context\"\n	\"errors\"\n	\"fmt\"\n	\"sync\"\n"},
				{rootPVAct, "func (r *reconciler) executeStep(", "var flipped sync.Map\n\nfunc (r *reconciler) executeStep("},
				{rootPVAct, "	after := *s // the volume", "	flipped.Store(s.Host.UID, true)\n	after := *s // the volume"},
				{rootPVAct, "	case lifecycle.DeleteClaim:\n", "	case lifecycle.DeleteClaim:\n		if _, known := flipped.Load(s.Host.UID); !known {\n			return reconcile.Result{}, nil\n		}\n"},
			},
			Scenario: "delete", Fault: "kill-after@cluster38/patch/persistentvolumes/volume#1",
			Caught: []string{"I1", "I6"},
		},
	}
}

// All returns all mutations.
func All() []Mutation {
	return slices.Concat(kosmos(), others(), own(), reviewed(), ofSnapshots(), ofAttributes(), ofAttachments())
}
