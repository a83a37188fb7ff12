// Package leafevent repeats a member's Warning events on the root objects in the host, so
// that `kubectl describe` of a user's Pod or claim shows what is wrong with its leaf: the
// controller leaf_event, for each Link, one request per event of the member.
//
// The repeated event's name is derived from the original's, so that a restart finds it, and
// a growing count updates it. An event is repeated only for a leaf that is Xylem's, on a root
// that has that leaf here: a writer of events or stamps in a member cannot add text to
// objects of the host that have nothing to do with that member (I8).
package leafevent
