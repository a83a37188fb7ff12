package lifecycle_test

import "github.com/xylem-io/xylem/internal/controller/rootpod/lifecycle/lifecycletest"

// Short names for the fixtures of package lifecycletest.
var (
	here        = lifecycletest.MemberHere
	there       = lifecycletest.There
	now         = lifecycletest.Now
	seen        = lifecycletest.ObservedPod
	rootPod     = lifecycletest.RootPod
	virtualNode = lifecycletest.VirtualNode
	asked       = lifecycletest.RequestedClaim
	bound       = lifecycletest.BoundClaim
	pushed      = lifecycletest.WithPushedCondition
	leafOf      = lifecycletest.LeafPodOf
	running     = lifecycletest.WithLeafPod
	on          = lifecycletest.BoundToNode
	onNode      = lifecycletest.BoundToMember
	phase       = lifecycletest.WithPhase
	promised    = lifecycletest.ObservedPromisePod
	keptIn      = lifecycletest.DiskProvisionedIn
	scratch     = lifecycletest.ReleasedWhenUnused
)
