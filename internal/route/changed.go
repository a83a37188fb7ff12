package route

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/xylem-io/xylem/internal/nodes"
)

// ChangedPredicate rejects updates that change nothing. After an informer has lost its watch, it lists again
// and reports each object as updated. Without ChangedPredicate, a restart of an API server would enqueue all
// volumes. Changed accepts the informer's periodic resync, whose old and new objects are
// identical, so that all objects are reconciled every few hours.
func ChangedPredicate() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return objectChanged(e.ObjectOld, e.ObjectNew) }}
}

// ConcernsFunc reports whether an update changes a part of an object that a controller reads. It is not
// called for a resync, or for an update after which the object concerns another member: such events
// always enqueue requests.
type ConcernsFunc func(before, after client.Object) bool

// PartChanged returns ConcernsFunc for a kind. look returns the part that the controller reads. Of compares the
// parts before and after the update with ==.
func PartChanged[T client.Object, V comparable](look func(T) V) ConcernsFunc {
	return func(before, after client.Object) bool {
		was, known := before.(T)
		is, ok := after.(T)
		return !known || !ok || look(was) != look(is)
	}
}

// LabelsChanged is ConcernsFunc for controllers that read only an object's labels.
func LabelsChanged(before, after client.Object) bool {
	return !maps.Equal(before.GetLabels(), after.GetLabels())
}

// ConcernsPredicate rejects updates that do not concern a controller.
func ConcernsPredicate(concerns ConcernsFunc) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld == e.ObjectNew || concerns(e.ObjectOld, e.ObjectNew)
	}}
}

// VirtualNodePredicate rejects events of Nodes that do not represent members.
func VirtualNodePredicate() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool {
		node, ok := obj.(*corev1.Node)
		return ok && nodes.IsVirtual(node)
	})
}

// SinceStartPredicate rejects the create events of objects that exist when a controller starts. Use it for
// handlers that enqueue only objects that are reconciled at the start anyway. No worker starts
// before each handler has received all of these events.
func SinceStartPredicate() predicate.Predicate {
	return predicate.Funcs{CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList }}
}

func objectChanged(before, after client.Object) bool {
	return before == after || before.GetResourceVersion() == "" || before.GetResourceVersion() != after.GetResourceVersion() ||
		before.GetGeneration() != after.GetGeneration() // the cache now keeps more of the same object
}
