// Package leafevent copies a member's Warning events to the root objects in the host, so that
// `kubectl describe` of a user's Pod or claim shows what is wrong with its leaf. Its
// controller leaf_event runs for each Link and reconciles one event of the member for each
// request.
//
// The name of the copy is derived from the original, so that the controller finds it after a
// restart and updates it when the count grows. An event is copied only if its object is a
// leaf, and only to a root that has this leaf in this member. Someone who writes events or
// stamps in a member therefore cannot add text to host objects that are not placed in that
// member (I8).
package leafevent
