// Package leafevent repeats a member's Warning events on the root objects in
// the host: the controller leaf_event, for each Link, one request per event of
// the member. So that `kubectl describe` of a user's Pod or claim tells why its
// leaf does not get on.
//
// An event is repeated under a name that follows from it, which makes a restart
// find what is there and a count that goes on be written to the same event. It
// is repeated only for a leaf that is ours, on a root that has that leaf here:
// whoever writes events or stamps in a member cannot put words on objects of
// the host that have nothing to do with that member (I8).
package leafevent
