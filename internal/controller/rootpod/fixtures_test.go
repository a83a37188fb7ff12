package rootpod

import "github.com/xylem-io/xylem/internal/controller/rootpod/lifecycle/lifecycletest"

// Short names for the fixtures of package lifecycletest.
var (
	here        = lifecycletest.Here
	there       = lifecycletest.There
	now         = lifecycletest.Now
	copies      = lifecycletest.Copies
	seen        = lifecycletest.Seen
	rootPod     = lifecycletest.RootPod
	virtualNode = lifecycletest.VirtualNode
	asked       = lifecycletest.Asked
	bound       = lifecycletest.Bound
	pushed      = lifecycletest.Pushed
	running     = lifecycletest.Running
	on          = lifecycletest.On
	onNode      = lifecycletest.OnNode
	phase       = lifecycletest.Phase
	promised    = lifecycletest.Promised
	keptIn      = lifecycletest.KeptIn
	scratch     = lifecycletest.Scratch
)
