package mutation

// reviewed re-creates defects that reviews found and the harness did not, until it restored
// clusters, registered them twice, re-created leaf PVs and looked for recovered panics.
func reviewed() []Mutation {
	return []Mutation{
		{
			Name: "other-uid-unmirrored", Class: "I2: a host PV whose leaf PV has another UID by now does not count: the volume is taken as never mirrored",
			Edits: []Edit{
				{"internal/index/proof.go", "	if len(known) > 0 {\n		return false, &known[0], nil\n	}", "	if len(known) > 0 {\n		return true, nil, nil\n	}"},
				{leafPVDecide, "	case !o.stamped && o.keepsData():", "	case !o.stamped && o.host != nil && o.keepsData():"},
				{rootPVCDecide, "(retained || len(o.mirrors) > 0 || o.restores.Predates(o.leaf))", "o.restores.Predates(o.leaf)"},
			},
			Scenario: "replaced-retain", Caught: []string{"I2", "I6"},
		},
		{
			Name: "older-takes-over", Class: "an older registration, which never connected, takes a cluster over from the one that has it",
			Edits:    []Edit{{"internal/controller/clusterregistration/register.go", "owner != nil && owner.UID != cr.UID {", "owner != nil && older(owner, cr) {"}},
			Scenario: "registered-before", Caught: []string{"I6"},
		},
		{
			Name: "late-notice", Class: "a host that is restored under a running manager is noticed at the next epoch only",
			Edits:    []Edit{{"internal/member/revision.go", "	if revision < highest {", "	if false && revision < highest {"}},
			Scenario: "delete", Fault: "restore-host@host/delete/pods/app#1", Caught: []string{"I2", "I6"},
		},
		{
			Name: "speaks-to-nobody", Class: "a leaf claim without a root makes root_pvc panic while destruction is suspended",
			Edits: []Edit{
				{rootPVCAct, "	if !errors.Is(err, guarded.ErrSuspended) || o.root == nil {", "	if !errors.Is(err, guarded.ErrSuspended) {"},
				{rootPVCAct, "	case o.root != nil:\n		r.eventProblem(o.root, problem)\n	case len(o.mirrors) > 0:", "	case problem != nil && len(o.root.Name) >= 0:\n		r.eventProblem(o.root, problem)\n	case len(o.mirrors) > 0:"},
			},
			Scenario: "create", Fault: "restore-host@host/create/persistentvolumes/volume#1", Caught: []string{"I6"},
		},
	}
}
