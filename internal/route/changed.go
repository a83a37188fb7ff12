package route

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Changed leaves out the updates that change nothing. An informer that has lost its
// watch lists everything again, and tells of each object as updated, which would have
// an API server's restart look at all volumes. Its resync, which hands on the very
// object that it has, is let through: every some hours, all is looked at again.
func Changed() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return changed(e.ObjectOld, e.ObjectNew) }}
}

func changed(before, after client.Object) bool {
	return before == after || before.GetResourceVersion() == "" || before.GetResourceVersion() != after.GetResourceVersion()
}
