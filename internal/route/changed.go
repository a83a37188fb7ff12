package route

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Changed leaves out the updates that change nothing. An informer that has lost its
// watch lists everything again, and reports each object as updated, which would have
// an API server's restart look at all volumes. Its resync, which passes on the very
// object that it has, is admitted: every some hours, all is examined again.
func Changed() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return changed(e.ObjectOld, e.ObjectNew) }}
}

// Concerns reports whether an update changes what a controller looks at. An update by which an
// object comes to concern another member, and a resync, always concern it.
type Concerns func(before, after client.Object) bool

// Of is Concerns for a kind, by what the controller looks at. It is compared by ==.
func Of[T client.Object, V comparable](look func(T) V) Concerns {
	return func(before, after client.Object) bool {
		was, known := before.(T)
		is, ok := after.(T)
		return !known || !ok || look(was) != look(is)
	}
}

// Concerning leaves out the updates that do not concern a controller.
func Concerning(concerns Concerns) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld == e.ObjectNew || concerns(e.ObjectOld, e.ObjectNew)
	}}
}

// SinceStart leaves out what there is when a controller starts: for handlers that only
// wake objects which are examined then in any case. No worker starts before all of
// this was gone through, for each handler.
func SinceStart() predicate.Predicate {
	return predicate.Funcs{CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList }}
}

func changed(before, after client.Object) bool {
	return before == after || before.GetResourceVersion() == "" || before.GetResourceVersion() != after.GetResourceVersion()
}
